/* What the programs hand out. src/record.rs has the same in Rust, and both sides assert sizes. */
#ifndef FOREREAD_RECORDS_H
#define FOREREAD_RECORDS_H

/* One descriptor of one process. */
struct open_file_record {
	u64 file;           /* address of the open file: its identity, nothing else */
	u64 inode;
	u64 size_bytes;
	u64 position_bytes;
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
	u32 zero;
	char comm[16];
	char bdi[64];
};

_Static_assert(sizeof(struct open_file_record) == 160, "src/record.rs has the same");

#endif
