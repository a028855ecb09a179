/* What the profiler's programs hand out. src/profile_record.rs has the same in Rust, and both sides
 * assert sizes. */
#ifndef FOREREAD_PROFILE_H
#define FOREREAD_PROFILE_H

enum {
	PROFILE_READ = 1,    /* a read call returned */
	PROFILE_FAULT = 2,   /* a fault of a mapped file looked for a page */
	PROFILE_MISS = 3,    /* a page was missing */
	PROFILE_MARK = 4,    /* the reader reached the mark */
	PROFILE_WINDOW = 5,  /* a window was submitted */
	PROFILE_PLAIN = 6,   /* pages were submitted that are no window */
	PROFILE_WAIT = 7,    /* a thread was blocked and runs again */
	PROFILE_ADVICE = 8,  /* fadvise, madvise or readahead returned */
	PROFILE_REQUEST = 9, /* a device completed a request */
	PROFILE_EVICT = 10,  /* pages of a file that was used left the page cache */
	PROFILE_TOUCH = 11,  /* a mapped page was touched that was not mapped, in the cache or not */
	PROFILE_CACHED = 12, /* reads of cached data returned: a batch_record */
};

/* Which page event came last on the thread within its call or fault: what it waits for. */
enum {
	REASON_NONE = 0,
	REASON_MISS = 1,
	REASON_MARK = 2,
	REASON_FAULT = 3,
};

/* Who asked for a request. */
enum {
	REQUESTER_UNKNOWN = 0,
	REQUESTER_PROFILED = 1,
	REQUESTER_OTHER = 2,
};

struct profile_record {
	u64 time_ns;     /* CLOCK_MONOTONIC: the end */
	u64 duration_ns; /* of a call; of a wait until the wake-up; of a request since its issue */
	union {
		struct {
			u64 file; /* the open file; 0 if unknown */
			u64 inode;
		};
		char comm[16]; /* of a request: the name of its thread */
	};
	u64 offset;      /* bytes; of a request the sector */
	u64 length;      /* bytes asked for */
	u64 stack;       /* of a wait or advice: the key of its stack record */
	s64 result;      /* of a call; of a wait: nanoseconds runnable before it ran */
	u64 waited_ns;   /* of a call: how long the thread was blocked in it; of a request: from its
			  * start to its issue */
	u64 size_bytes;  /* of the file */
	u32 device;
	u32 pid;
	u32 tid;
	u32 kind;
	u32 mode;        /* f_mode; of a request its operation; of a page event the number of references
			  * to the open file, 0 if that is not known */
	u32 flags;       /* f_flags; of a request how many were in flight at its issue; of an eviction
			  * whether a chosen thread asked for it by fadvise */
	u32 ra_pages;
	u32 detail;      /* the system call; of a wait the reason; of advice the advice */
	u32 in_iowait;
	u32 extra;       /* of a window: pages behind the mark; of advice the system call; of cached
			  * reads how many entries follow; of a request REQUESTER_*, whose process
			  * and thread it then has */
};

_Static_assert(sizeof(struct profile_record) == 120, "src/profile_record.rs has the same");

/* Read calls that found their data cached, each of the same length and each where the last one
 * ended. Times are those since the record's. */
struct cached_reads {
	u64 offset;
	u32 bytes; /* of each */
	u32 calls;
	u32 start_ns;
	u32 end_ns;
};

_Static_assert(sizeof(struct cached_reads) == 24, "src/profile_record.rs has the same");

#define BATCH_READS 8

/* Cached reads of one thread and open file: one record costs less than many. Unused entries are not
 * sent. */
struct batch_record {
	struct profile_record record;
	struct cached_reads reads[BATCH_READS];
};

_Static_assert(sizeof(struct batch_record) == 312, "src/profile_record.rs has the same");

#define KERNEL_FRAMES 32
#define USER_FRAMES 48
#define STACK_WORDS 64

/* A stack, once for each process and key. */
struct stack_record {
	u64 key;
	u64 code_mappings; /* upper half: a hash of the program and its address space; lower half:
			    * the size of its code, which changes with most changes of its
			    * mappings; 0 if there is none */
	u64 user_ip;
	u32 pid;
	u32 tid;
	u32 kernel_count;
	u32 user_count;
	u64 kernel[KERNEL_FRAMES];
	u64 user[USER_FRAMES];
	u64 words[STACK_WORDS]; /* from the user's stack pointer on: where functions without a
				 * frame return to is among them */
};

_Static_assert(sizeof(struct stack_record) == 1192, "src/profile_record.rs has the same");

#define NAME_PARTS 16
#define NAME_BYTES 64

/* A file's last path components, last first; sent once. */
struct name_record {
	u64 inode;
	u64 size_bytes;
	u32 device;
	u32 pid;
	u32 kind; /* i_mode & S_IFMT */
	u32 zero;
	char parts[NAME_PARTS][NAME_BYTES];
};

_Static_assert(sizeof(struct name_record) == 1056, "src/profile_record.rs has the same");

/* Where a thread's time went. */
struct thread_time {
	u64 first_ns;
	u64 last_ns;
	u64 cpu_ns;
	u64 runnable_ns;
	u64 blocked_ns;
	u32 pid;
	u32 zero;
	char comm[16]; /* as it was called last */
};

_Static_assert(sizeof(struct thread_time) == 64, "src/profile_record.rs has the same");

/* Whom to profile. */
struct profile_config {
	u32 spawner; /* children of this process are profiled */
	u32 mode;    /* MODE_* */
};

#define MODE_PROCESSES 0
#define MODE_CGROUPS 1
#define MODE_ALL 2

#endif
