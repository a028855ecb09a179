/* What the programs hand out. src/record.rs has the same in Rust, and both sides assert sizes. */
#ifndef FOREREAD_RECORDS_H
#define FOREREAD_RECORDS_H

/* One descriptor of one process, or one mapping. */
struct open_file_record {
	u64 file;           /* address of the open file: its identity, nothing else */
	u64 map_start;      /* addresses of the mapping; 0 for a descriptor */
	u64 map_end;
	u64 inode;
	u64 size_bytes;
	u64 position_bytes;
	u64 previous_bytes; /* where the last read of a call ended, pread or not */
	u64 cgroup;
	u32 device;         /* of the file system, or of the disk itself */
	u32 pid;
	u32 fd;
	u32 uid;
	u32 mode;           /* f_mode */
	u32 flags;          /* f_flags */
	u32 ra_pages;
	u32 bdi_ra_pages;
	u32 kind;           /* i_mode & S_IFMT */
	u32 executable;     /* whether the mapping is */
	u32 overlay;        /* device of the overlayfs through which it was opened; 0 if none */
	u32 zero;
	char comm[16];
	char bdi[64];
};

_Static_assert(sizeof(struct open_file_record) == 192, "src/record.rs has the same");

/* What an event is. */
enum {
	EVENT_MISS = 1,   /* a reader found a page missing and will wait for it */
	EVENT_MARK = 2,   /* a reader reached the mark: the next window is due */
	EVENT_WINDOW = 3, /* a window was submitted */
	EVENT_PLAIN = 4,  /* pages were submitted that are no window: just what was asked for */
	EVENT_STALL = 5,  /* a reader waited for the disk */
};

struct event_record {
	u64 time_ns;     /* CLOCK_MONOTONIC */
	u64 file;        /* the address that open_file_record has; 0 if no open file is known */
	u64 inode;
	u64 cgroup;
	u64 index;       /* page */
	u64 count;       /* pages asked for or submitted; of a stall, nanoseconds */
	u64 start;       /* the window: its first page, */
	u64 previous_bytes; /* of a miss or mark: where the read call before ended */
	u32 size;        /* its pages, */
	u32 async_size;  /* and how many of these lie behind the mark */
	u32 ra_pages;
	u32 device;
	u32 pid;
	u32 tid;
	u32 kind;
	u32 mapped;      /* by a fault of a mapped file */
	char comm[16];
};

_Static_assert(sizeof(struct event_record) == 112, "src/record.rs has the same");

/* A miss of an open file whose misses are told at once. */
struct miss_record {
	u64 time_ns;
	u64 file;
	u64 inode;
	u64 index;
	u64 count;
	u32 device;
	u32 pid;
	u32 tid;
	u32 zero;
};

_Static_assert(sizeof(struct miss_record) == 56, "src/record.rs has the same");

/* Key of the request counts: device and size bucket. */
struct size_key {
	u32 device; /* or partition */
	u32 bucket; /* 0 up to 4 KiB, each next twice as large */
};

#define SIZE_BUCKETS 24

/* How many files may be sampled at once: src/samples.rs has the same. */
#define SAMPLED_FILES 256

/* How many files may be awaited at once. */
#define AWAITED_FILES 4096

/* A file that is sampled or awaited. */
struct inode_key {
	u64 inode;
	u32 device; /* as in event_record */
	u32 zero;
};

_Static_assert(sizeof(struct inode_key) == 16, "src/record.rs has the same");

/* What an access is. */
enum {
	SAMPLE_READ = 1,   /* read(2) and the like */
	SAMPLE_FAULT = 2,  /* a fault that looked for its page */
	SAMPLE_MAPPED = 3, /* a fault that found cached pages and mapped those around, too */
};

/* An access to a file, whether its pages were cached or not. */
struct sample_record {
	u64 time_ns; /* CLOCK_MONOTONIC */
	u64 inode;
	u64 first;   /* page */
	u64 last;
	u32 device;
	u32 pid;
	u32 tid;
	u32 kind;
};

_Static_assert(sizeof(struct sample_record) == 48, "src/record.rs has the same");

#endif
