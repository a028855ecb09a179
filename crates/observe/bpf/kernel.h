/* The parts of the kernel that the programs touch.
 *
 * The structures hold only the fields that are read, in any order: where a field lies in the
 * running kernel is looked up in its BTF when the programs are loaded (CO-RE). So neither the
 * kernel's headers nor a dump of its types is needed to build. Helpers go by their number, which
 * is part of the kernel's interface (include/uapi/linux/bpf.h).
 */
#ifndef FOREREAD_KERNEL_H
#define FOREREAD_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define NULL ((void *)0)
#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define CORE __attribute__((preserve_access_index))

/* How a BTF-defined map says what it is. */
#define MAP_INT(name, value) int(*name)[value]
#define MAP_TYPE(name, type) type *name

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) =
	(void *)2;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static u64 (*const bpf_get_current_task)(void) = (void *)35;
static long (*const bpf_get_current_comm)(void *to, u32 size) = (void *)16;
static u64 (*const bpf_get_current_cgroup_id)(void) = (void *)80;
static long (*const bpf_ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static void *(*const bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static u64 (*const bpf_ringbuf_query)(void *ring, u64 flags) = (void *)134;
static long (*const bpf_seq_write)(void *seq, const void *data, u32 size) = (void *)127;
static long (*const bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const bpf_probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;

/* A field of a structure of the kernel. Programs at typed tracepoints and function entries load it;
 * those of kprobes get addresses without types and have to copy it. `copied` is a constant. */
#define GET(from, field, copied)                                                            \
	({                                                                                  \
		__typeof__((from)->field) field_;                                              \
		if (copied)                                                                 \
			bpf_probe_read_kernel(&field_, sizeof(field_), &(from)->field);           \
		else                                                                        \
			field_ = (from)->field;                                                \
		field_;                                                                        \
	})

/* An argument of a program. The compiler must not choose between two of them by an address that it
 * computes, which verifiers refuse: `which` keeps their loads apart. */
#define ARGUMENT(ctx, which)                                                                \
	({                                                                                  \
		u64 value_ = (ctx)[which];                                                  \
		__asm__ volatile("" : "+r"(value_) : "i"(which));                           \
		value_;                                                                     \
	})

/* Whether the running kernel has the field. */
#define HAS(type, field) __builtin_preserve_field_info(((struct type *)0)->field, FIELD_EXISTS)

static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static long (*const bpf_get_stack)(void *ctx, void *to, u32 size, u64 flags) = (void *)67;
static long (*const bpf_probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static struct pt_regs *(*const bpf_task_pt_regs)(struct task_struct *task) = (void *)175;

/* Of bpf_get_stack(). */
#define BPF_F_USER_STACK (1 << 8)

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_HASH 5
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_MAP_TYPE_RINGBUF 27
/* Whoever reads the ring comes by himself; waking him for each event would cost the readers. */
#define BPF_RB_NO_WAKEUP 1
/* For records that are urgent. */
#define BPF_RB_FORCE_WAKEUP 2
/* How much of a ring was not read yet. */
#define BPF_RB_AVAIL_DATA 0

/* What __builtin_preserve_field_info() gives. */
#define FIELD_BYTE_OFFSET 0
#define FIELD_BYTE_SIZE 1
#define FIELD_EXISTS 2
#define FIELD_LSHIFT 4
#define FIELD_RSHIFT 5
/* What __builtin_preserve_enum_value() gives. */
#define ENUM_EXISTS 0
#define ENUM_VALUE 1

enum bpf_func_id {
	BPF_FUNC_task_pt_regs = 175,
};

/* Whether the running kernel has the helper, by its name in `enum bpf_func_id`. */
#define HAS_HELPER(name)                                                                    \
	__builtin_preserve_enum_value(*(enum bpf_func_id *)BPF_FUNC_##name, ENUM_EXISTS)

/* The operation in a request's flags (include/linux/blk_types.h). */
#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0

#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFBLK 0060000

#define OVERLAYFS_SUPER_MAGIC 0x794c7630

struct backing_dev_info {
	unsigned long ra_pages;
	char dev_name[64];
} CORE;

struct hlist_node {
	struct hlist_node *next;
} CORE;

struct hlist_head {
	struct hlist_node *first;
} CORE;

struct qstr {
	const u8 *name;
} CORE;

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
} CORE;

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
	struct backing_dev_info *s_bdi;
} CORE;

struct inode {
	u16 i_mode;
	u32 i_rdev;
	unsigned long i_ino;
	s64 i_size;
	struct super_block *i_sb;
	struct hlist_head i_dentry; /* of dentry.d_u.d_alias */
} CORE;

/* Before Linux 5.16 the bdi belongs to the queue. */
struct request_queue {
	struct backing_dev_info *backing_dev_info;
} CORE;

struct gendisk {
	struct backing_dev_info *bdi;
	struct request_queue *queue;
} CORE;

/* `bd_part` is missing since Linux 5.11. */
struct block_device {
	u32 bd_dev;
	struct gendisk *bd_disk;
	struct hd_struct *bd_part;
} CORE;

struct device {
	u32 devt;
} CORE;

/* A partition, before Linux 5.11. */
struct hd_struct {
	struct device __dev;
} CORE;

/* A request to a driver. */
struct request {
	u32 cmd_flags;
	u32 __data_len;
	u64 __sector;
	struct block_device *part;
} CORE;

/* A request of io_uring. */
struct io_kiocb {
	u8 opcode;
} CORE;

#define IORING_OP_READV 1
#define IORING_OP_READ_FIXED 4
#define IORING_OP_READ 22

/* An inode of the pseudo file system of block devices lies behind the device itself. */
struct bdev_inode {
	struct block_device bdev;
	struct inode vfs_inode;
} CORE;

struct address_space {
	struct inode *host;
} CORE;

enum pageflags {
	PG_head = 6, /* looked up in the running kernel */
};

/* The device of a request. Before Linux 5.11 a partition is no block device. */
#define DEVICE_OF_PART(part)                                                                \
	(HAS(block_device, bd_part) ? ((struct hd_struct *)(part))->__dev.devt : (part)->bd_dev)

/* Consecutive cached pages. The field with their number was renamed. */
struct folio {
	struct address_space *mapping;
	unsigned long index;
	u32 _nr_pages;
	u32 _folio_nr_pages;
} CORE;

/* What is evicted before Linux 5.16, which has folios. */
struct page {
	struct address_space *mapping;
	unsigned long index;
} CORE;

struct file_ra_state {
	unsigned long start;
	u32 size;
	u32 async_size;
	u32 ra_pages;
	s64 prev_pos;
} CORE;

/* A counter of the kernel: an atomic64_t, or an atomic_long_t. */
struct counter {
	s64 counter;
} CORE;

struct file_ref {
	struct counter refcnt;
} CORE;

struct file {
	struct file_ref f_ref; /* since Linux 6.13: 0 for one reference */
	struct counter f_count; /* before: the number of references */
	u32 f_mode;
	u32 f_flags;
	s64 f_pos;
	struct inode *f_inode;
	struct address_space *f_mapping;
	struct file_ra_state f_ra;
	void *private_data;
} CORE;

struct kuid {
	u32 val;
} CORE;

struct cred {
	struct kuid uid;
} CORE;

struct kernfs_node {
	u64 id;
} CORE;

struct cgroup {
	struct kernfs_node *kn;
} CORE;

struct css_set {
	struct cgroup *dfl_cgrp;
} CORE;

struct mm_struct {
	unsigned long start_code;
	unsigned long end_code;
	unsigned long exec_vm;
} CORE;

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	struct file *vm_file;
} CORE;

struct vm_fault {
	struct vm_area_struct *vma;
	unsigned long pgoff;
} CORE;

struct task_struct {
	struct mm_struct *mm;
	s32 pid;
	s32 tgid;
	char comm[16];
	const struct cred *real_cred;
	struct css_set *cgroups;
	struct task_struct *group_leader;
	struct files_struct *files;
	s32 pagefault_disabled;
	unsigned in_iowait : 1;
	u32 __state;
	long state; /* before Linux 5.14 */
} CORE;

struct fdtable {
	u32 max_fds;
	struct file **fd;
} CORE;

struct files_struct {
	struct fdtable *fdt;
} CORE;

/* The arguments of a system call, and the numbers of the calls that are looked at. A machine that
 * is not listed has no calls: waits and requests are seen all the same. */
#if defined(FOREREAD_X86_64)
#define CALL_ARG_0(regs) ((regs)->di)
#define CALL_ARG_1(regs) ((regs)->si)
#define CALL_ARG_2(regs) ((regs)->dx)
#define CALL_ARG_3(regs) ((regs)->r10)
#define REG_IP(regs) ((regs)->ip)
#define REG_SP(regs) ((regs)->sp)
#define REG_FP(regs) ((regs)->bp)
#define NR_READ 0
#define NR_PREAD 17
#define NR_READV 19
#define NR_MADVISE 28
#define NR_READAHEAD 187
#define NR_FADVISE 221
#define NR_PREADV 295
#else
#define CALL_ARG_0(regs) ((regs)->regs[0])
#define CALL_ARG_1(regs) ((regs)->regs[1])
#define CALL_ARG_2(regs) ((regs)->regs[2])
#define CALL_ARG_3(regs) ((regs)->regs[3])
#define REG_IP(regs) ((regs)->pc)
#define REG_SP(regs) ((regs)->sp)
#define REG_FP(regs) ((regs)->regs[29])
#define NR_READ 63
#define NR_PREAD 67
#define NR_READV 65
#define NR_MADVISE 233
#define NR_READAHEAD 213
#define NR_FADVISE 223
#define NR_PREADV 69
#endif

/* `ra` is missing before Linux 5.13. */
struct readahead_control {
	struct file *file;
	struct address_space *mapping;
	struct file_ra_state *ra;
	unsigned long _index;
} CORE;

/* Registers with the arguments of a function, as x86-64 and as arm64 have them. */
struct pt_regs {
	unsigned long di;
	unsigned long si;
	unsigned long dx;
	unsigned long cx;
	u64 regs[31];
	unsigned long r10, ip, sp, bp, pc; /* of a system call */
} CORE;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} CORE;

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
} CORE;

struct bpf_iter__task_vma {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct vm_area_struct *vma;
} CORE;

/* For GET(). */
#define LOADED 0
#define COPIED 1

/* The file_ra_state of a request; before Linux 5.13, that of its file. */
INLINE struct file_ra_state *state_of(struct readahead_control *request, u32 copied)
{
	if (HAS(readahead_control, ra))
		return GET(request, ra, copied);
	struct file *file = GET(request, file, copied);
	return file ? &file->f_ra : NULL;
}

INLINE struct inode *inode_of(struct readahead_control *request, u32 copied)
{
	struct address_space *mapping = GET(request, mapping, copied);
	return GET(mapping, host, copied);
}

/* The arguments of a function at its entry, of which the first is a request. */
struct arguments {
	struct readahead_control *request;
	u64 second;
	u64 third;
	u64 fourth;
};

INLINE struct arguments arguments_of(struct pt_regs *entry)
{
	struct arguments at = {};
	if (HAS(pt_regs, di)) {
		at.request = (void *)GET(entry, di, COPIED);
		at.second = GET(entry, si, COPIED);
		at.third = GET(entry, dx, COPIED);
		at.fourth = GET(entry, cx, COPIED);
	} else if (HAS(pt_regs, regs)) {
		at.request = (void *)GET(entry, regs[0], COPIED);
		at.second = GET(entry, regs[1], COPIED);
		at.third = GET(entry, regs[2], COPIED);
		at.fourth = GET(entry, regs[3], COPIED);
	}
	return at;
}

#endif
