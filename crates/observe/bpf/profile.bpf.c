/* Waits of chosen processes with their stacks, and what led to them: calls, faults, misses, windows,
 * advice, requests. Nothing here changes anything. */
#include "kernel.h"
#include "profile.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	MAP_INT(type, BPF_MAP_TYPE_RINGBUF);
	MAP_INT(max_entries, 16 << 20);
} events SEC(".maps");

#define DETAIL_BYTES (4 << 20)

/* Stacks and names. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_RINGBUF);
	MAP_INT(max_entries, DETAIL_BYTES);
} details SEC(".maps");

/* Records that found their ring full: events, then details. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_INT(max_entries, 2);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} lost SEC(".maps");

struct {
	MAP_INT(type, BPF_MAP_TYPE_ARRAY);
	MAP_INT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct profile_config);
} config SEC(".maps");

/* The chosen processes. If there are too many, the least recently used are dropped. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_LRU_HASH);
	MAP_INT(max_entries, 65536);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} targets SEC(".maps");

/* The chosen cgroups. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_HASH);
	MAP_INT(max_entries, 4096);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, u32);
} cgroups SEC(".maps");

/* What a thread is doing. */
struct doing {
	u32 tid;         /* 0 if the slot is free */
	u64 call_ns;     /* since when it is in a call that is looked at; 0 outside */
	u64 file;
	u64 inode;
	u64 offset;
	u64 length;
	u64 size_bytes;
	u64 waited_ns;   /* blocked within the call */
	u64 stack;       /* of an advice call */
	u64 code_mappings; /* those of the last stack that was sent */
	u32 changes;     /* how often they have changed in this program */
	u64 out_ns;      /* when it was switched out; 0 if running */
	u64 wake_ns;
	u64 wait_stack;
	u64 wait_place;  /* hash of place and reason of its last wait; 0 if unknown, */
	u64 place_stack; /* and the stack there */
	u64 page_inode;  /* the last page that it looked for, */
	u64 page_offset;
	u64 page_file;
	u32 page_device;
	u32 reason;      /* and how it was found */
	u32 device;
	u32 call;
	u32 mode;
	u32 flags;
	u32 ra_pages;
	u32 detail;
	u32 in_iowait;
	u32 zero;
	u64 inode_address;
	u64 fault_address; /* the last one */
	struct batch_record batch; /* cached reads that were not sent yet */
};

/* Chosen threads that are alive, each in one of two slots that follow from its number: every call and
 * switch looks here, and an array costs least. */
#define MAX_THREADS 32768

struct {
	MAP_INT(type, BPF_MAP_TYPE_ARRAY);
	MAP_INT(max_entries, MAX_THREADS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct doing);
} threads SEC(".maps");

struct {
	MAP_INT(type, BPF_MAP_TYPE_LRU_HASH);
	MAP_INT(max_entries, 32768);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct thread_time);
} times SEC(".maps");

struct stack_key {
	u64 key;
	u64 pid;
};

/* Stacks that were sent. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_LRU_HASH);
	MAP_INT(max_entries, 16384);
	MAP_TYPE(key, struct stack_key);
	MAP_TYPE(value, u32);
} sent_stacks SEC(".maps");

struct file_key {
	u64 inode;
	u64 device;
};

/* Files whose names were sent. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_LRU_HASH);
	MAP_INT(max_entries, 65536);
	MAP_TYPE(key, struct file_key);
	MAP_TYPE(value, u32);
} sent_names SEC(".maps");

struct {
	MAP_INT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_INT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct stack_record);
} scratch SEC(".maps");

/* Who asked for a request. */
struct requester {
	u64 time_ns;
	u32 pid;
	u32 tid;
	u32 is_profiled;
	u32 zero;
	char comm[16];
};

/* Requests with a known requester, which is not a kernel thread. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_LRU_HASH);
	MAP_INT(max_entries, 16384);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, struct requester);
} requesters SEC(".maps");

/* Reads through io_uring: submitted, then those that went to a worker thread. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_INT(max_entries, 2);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} uring_reads SEC(".maps");

struct issued {
	u64 time_ns;
	u64 sector;
	u32 bytes;
	u32 in_flight;
	u32 device;
	u32 zero;
};

/* Requests in flight. Not an LRU map: a dropped request would stay in the in_flight count. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_HASH);
	MAP_INT(max_entries, 16384);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, struct issued);
} requests SEC(".maps");

/* How many requests each device is working on. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_LRU_HASH);
	MAP_INT(max_entries, 1024);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, s64);
} in_flight SEC(".maps");

/* Cached reads are sent after so many calls in order and after so long, so that little is missing at the
 * end. */
#define MAX_RUN_CALLS 1024
#define MAX_BATCH_NS 100000000

#define READ_FIELD(to, from, field) bpf_probe_read_kernel(&(to), sizeof(to), &(from)->field)

INLINE void count_lost(u32 which)
{
	u64 *count = bpf_map_lookup_elem(&lost, &which);
	if (count)
		*count += 1;
}

INLINE u32 is_target(u32 pid)
{
	u32 zero = 0;
	struct profile_config *choice = bpf_map_lookup_elem(&config, &zero);
	if (!choice || !pid)
		return 0;
	if (choice->mode == MODE_ALL)
		return pid != choice->spawner;
	if (choice->mode == MODE_CGROUPS) {
		u64 cgroup = bpf_get_current_cgroup_id();
		return bpf_map_lookup_elem(&cgroups, &cgroup) != NULL;
	}
	return bpf_map_lookup_elem(&targets, &pid) != NULL;
}

/* Either slot of a thread, if it belongs to `owner`. */
INLINE struct doing *slot_of(u32 tid, u32 owner)
{
	u32 slot = tid % MAX_THREADS;
	struct doing *doing = bpf_map_lookup_elem(&threads, &slot);
	if (doing && doing->tid == owner)
		return doing;
	slot = (tid * 2654435761U) / (u32)(0x100000000ULL / MAX_THREADS);
	doing = bpf_map_lookup_elem(&threads, &slot);
	return doing && doing->tid == owner ? doing : NULL;
}

/* What a thread is doing; NULL if it is not known to be profiled. */
INLINE struct doing *known_thread(u32 tid)
{
	return tid ? slot_of(tid, tid) : NULL;
}

/* As above for the current thread; adds it if profiled. */
INLINE struct doing *current_thread(void)
{
	u64 who = bpf_get_current_pid_tgid();
	u32 tid = (u32)who;
	struct doing *doing = known_thread(tid);
	if (doing)
		return doing;
	if (!is_target(who >> 32))
		return NULL;
	doing = slot_of(tid, 0);
	if (!doing) {
		count_lost(0);
		return NULL;
	}
	__builtin_memset(doing, 0, sizeof(*doing));
	doing->tid = tid;
	/* An exited thread may have had this thread ID; the time since is not counted. */
	struct thread_time *earlier = bpf_map_lookup_elem(&times, &tid);
	if (earlier) {
		u64 now = bpf_ktime_get_ns();
		earlier->first_ns += now - earlier->last_ns;
		earlier->last_ns = now;
		earlier->pid = who >> 32;
	}
	return doing;
}

INLINE struct profile_record *begin_record_of(u64 who, u32 kind)
{
	struct profile_record *record = bpf_ringbuf_reserve(&events, sizeof(*record), 0);
	if (!record) {
		count_lost(0);
		return NULL;
	}
	__builtin_memset(record, 0, sizeof(*record));
	record->kind = kind;
	record->time_ns = bpf_ktime_get_ns();
	record->pid = who >> 32;
	record->tid = (u32)who;
	return record;
}

INLINE struct profile_record *begin_record(u32 kind)
{
	return begin_record_of(bpf_get_current_pid_tgid(), kind);
}

INLINE u32 kind_of(struct inode *inode)
{
	u16 mode = 0;
	READ_FIELD(mode, inode, i_mode);
	return mode & S_IFMT;
}

INLINE u32 device_of(struct inode *inode)
{
	u32 device = 0;
	struct super_block *super = NULL;
	if (kind_of(inode) == S_IFBLK) {
		READ_FIELD(device, inode, i_rdev);
		return device;
	}
	READ_FIELD(super, inode, i_sb);
	READ_FIELD(device, super, s_dev);
	return device;
}

/* Sends a stack or a name: the reader comes by itself soon enough, unless this is urgent or the ring
 * is half full. */
INLINE void submit_detail(void *record, u32 is_urgent)
{
	u32 is_late = bpf_ringbuf_query(&details, BPF_RB_AVAIL_DATA) > DETAIL_BYTES / 2;
	bpf_ringbuf_submit(record, is_urgent || is_late ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* Sends the name of a file that was not seen before. */
INLINE void send_name(struct inode *inode, u64 number, u32 device)
{
	struct file_key key = { .inode = number, .device = device };
	u32 one = 1;
	if (bpf_map_lookup_elem(&sent_names, &key))
		return;
	bpf_map_update_elem(&sent_names, &key, &one, 0);
	struct name_record *record = bpf_ringbuf_reserve(&details, sizeof(*record), 0);
	if (!record) {
		count_lost(1);
		bpf_map_delete_elem(&sent_names, &key);
		return;
	}
	record->inode = number;
	record->size_bytes = 0;
	record->device = device;
	record->pid = bpf_get_current_pid_tgid() >> 32;
	record->zero = 0;
	for (int part = 0; part < NAME_PARTS; part++)
		record->parts[part][0] = 0;
	record->kind = kind_of(inode);
	READ_FIELD(record->size_bytes, inode, i_size);
	struct hlist_node *alias = NULL;
	READ_FIELD(alias, inode, i_dentry.first);
	if (alias) {
		u32 within = __builtin_preserve_field_info(((struct dentry *)0)->d_u.d_alias,
							   FIELD_BYTE_OFFSET);
		struct dentry *entry = (void *)alias - within;
		for (int part = 0; part < NAME_PARTS; part++) {
			struct dentry *parent = NULL;
			const u8 *name = NULL;
			READ_FIELD(name, entry, d_name.name);
			READ_FIELD(parent, entry, d_parent);
			if (!parent || parent == entry)
				break;
			bpf_probe_read_kernel_str(record->parts[part], NAME_BYTES, name);
			entry = parent;
		}
	}
	submit_detail(record, 0);
}

/* The open file behind a descriptor of the current process. */
INLINE struct file *file_of_descriptor(u64 descriptor)
{
	struct fdtable *table = NULL;
	struct file **array = NULL, *file = NULL;
	u32 count = 0;
	if (HAS_HELPER(task_pt_regs)) {
		/* The newer helper, whose fields are loaded without a call each. */
		table = bpf_get_current_task_btf()->files->fdt;
		count = table->max_fds;
		array = table->fd;
	} else {
		struct task_struct *task = (void *)bpf_get_current_task();
		struct files_struct *files = NULL;
		READ_FIELD(files, task, files);
		READ_FIELD(table, files, fdt);
		READ_FIELD(count, table, max_fds);
		READ_FIELD(array, table, fd);
	}
	if (descriptor >= count)
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), array + descriptor);
	return file;
}

/* Updates the mutable fields of the open file. */
INLINE void look_at_file(struct doing *doing)
{
	struct file *file = (void *)doing->file;
	struct inode *inode = (void *)doing->inode_address;
	READ_FIELD(doing->size_bytes, inode, i_size);
	READ_FIELD(doing->mode, file, f_mode);
	READ_FIELD(doing->flags, file, f_flags);
	READ_FIELD(doing->ra_pages, file, f_ra.ra_pages);
}

/* Remembers the open file of a call; NULL if it is of no interest. */
INLINE struct file *remember_file(struct doing *doing, u64 descriptor)
{
	struct file *file = file_of_descriptor(descriptor);
	struct inode *inode = NULL;
	u64 number = 0;
	if (!file)
		return NULL;
	READ_FIELD(inode, file, f_inode);
	READ_FIELD(number, inode, i_ino);
	/* Most calls are of the file of the call before, and while its data is cached the rest stays
	 * as it was. */
	if ((u64)inode != doing->inode_address || number != doing->inode) {
		u32 kind = kind_of(inode);
		if (kind != S_IFREG && kind != S_IFBLK)
			return NULL;
		doing->device = device_of(inode);
		doing->inode = number;
		doing->inode_address = (u64)inode;
		send_name(inode, number, doing->device);
	} else if (doing->file == (u64)file) {
		return file;
	}
	doing->file = (u64)file;
	look_at_file(doing);
	return file;
}

INLINE u64 mix(u64 hash, u64 word)
{
	hash ^= word;
	hash *= 0xff51afd7ed558ccdULL;
	return hash ^ (hash >> 32);
}

/* A hash of what tells callers without a frame apart: the word at the stack pointer, and the further
 * ones that lie in the code of the program. Others are data, which differ from call to call. Also
 * notes which code the process has, as that is read from the same place. */
INLINE u64 hash_words(struct stack_record *stack, struct task_struct *task)
{
	struct mm_struct *mm = NULL;
	unsigned long start = 0, end = 0, executable_pages = 0;
	READ_FIELD(mm, task, mm);
	if (mm) {
		READ_FIELD(start, mm, start_code);
		READ_FIELD(end, mm, end_code);
		READ_FIELD(executable_pages, mm, exec_vm);
	}
	/* A new program changes the upper half. */
	stack->code_mappings = mm ? mix(start, (u64)mm) << 32 | (u32)executable_pages : 0;
	u64 hash = mix(mix(0x9e3779b97f4a7c15ULL, stack->user_ip), stack->words[0]);
	for (u32 index = 1; index < STACK_WORDS; index++) {
		u64 word = stack->words[index];
		if (start <= word && word < end)
			hash = mix(hash, word);
	}
	return hash;
}

/* How far behind the stack pointer the first frame may lie. */
#define MAX_FRAME_BYTES (1 << 20)

/* Stores the user stack and returns its hash. */
INLINE u64 take_user_stack(void *ctx, struct stack_record *stack)
{
	u32 has_frames = 1, user = 0;
	if (HAS_HELPER(task_pt_regs)) {
		struct pt_regs *regs = bpf_task_pt_regs(bpf_get_current_task_btf());
		void *top = (void *)REG_SP(regs);
		stack->user_ip = REG_IP(regs);
		/* Most code keeps other things in the register, which cost a fault each. */
		has_frames = REG_FP(regs) - REG_SP(regs) < MAX_FRAME_BYTES;
		/* Near the end of the stack, at least the first: what cannot be read is 0. */
		if (bpf_probe_read_user(stack->words, sizeof(stack->words), top))
			bpf_probe_read_user(stack->words, sizeof(u64), top);
	}
	if (has_frames) {
		long bytes = bpf_get_stack(ctx, stack->user, sizeof(stack->user), BPF_F_USER_STACK);
		user = bytes > 0 ? (u32)bytes / 8 : 0;
	}
	if (!HAS_HELPER(task_pt_regs)) {
		/* Before Linux 5.15 callers are known by frame pointers only. */
		stack->user_ip = user ? stack->user[0] : 0;
		__builtin_memset(stack->words, 0, sizeof(stack->words));
	}
	stack->user_count = user;
	u64 hash = hash_words(stack, (void *)bpf_get_current_task());
	for (u32 index = 0; index < USER_FRAMES; index++) {
		if (index >= user)
			break;
		hash = mix(hash, stack->user[index]);
	}
	return hash;
}

/* How many changes of a program's mappings are read at once. */
#define MAX_URGENT_CHANGES 8

/* Whether the reader must look at mappings before the process may exit: those of a new program, and
 * of the first libraries that it loads. */
INLINE u32 is_urgent(struct doing *doing, u64 mappings)
{
	u64 before = doing->code_mappings;
	if (!mappings || mappings == before)
		return 0;
	doing->code_mappings = mappings;
	doing->changes = mappings >> 32 == before >> 32 ? doing->changes + 1 : 0;
	return doing->changes < MAX_URGENT_CHANGES;
}

/* The key of the current stack, which is sent once. A thread that waits again at the same place of
 * the program, and for `what` if that is not 0, does so by the same functions of the kernel: to find
 * these takes longest. */
INLINE u64 take_stack(void *ctx, struct doing *doing, u32 what)
{
	u32 zero = 0, one = 1;
	struct stack_record *stack = bpf_map_lookup_elem(&scratch, &zero);
	if (!stack)
		return 0;
	u64 who = bpf_get_current_pid_tgid();
	u64 hash = take_user_stack(ctx, stack);
	u64 place = what ? mix(hash, what) : 0;
	if (place && place == doing->wait_place)
		return doing->place_stack;
	long bytes = bpf_get_stack(ctx, stack->kernel, sizeof(stack->kernel), 0);
	u32 kernel = bytes > 0 ? (u32)bytes / 8 : 0;
	for (u32 index = 0; index < KERNEL_FRAMES; index++) {
		if (index >= kernel)
			break;
		hash = mix(hash, stack->kernel[index]);
	}
	stack->pid = who >> 32;
	stack->tid = (u32)who;
	stack->kernel_count = kernel;
	stack->key = hash;
	struct stack_key key = { .key = hash, .pid = stack->pid };
	if (!bpf_map_lookup_elem(&sent_stacks, &key)) {
		struct stack_record *record = bpf_ringbuf_reserve(&details, sizeof(*record), 0);
		if (!record) {
			count_lost(1);
			return hash;
		}
		bpf_map_update_elem(&sent_stacks, &key, &one, 0);
		/* Too large for an inline copy. */
		bpf_probe_read_kernel(record, sizeof(*record), stack);
		submit_detail(record, is_urgent(doing, stack->code_mappings));
	}
	if (place) {
		doing->wait_place = place;
		doing->place_stack = hash;
	}
	return hash;
}

/* A record of the call that the current thread has made. */
INLINE void describe_call(struct profile_record *record, struct doing *doing)
{
	record->file = doing->file;
	record->inode = doing->inode;
	record->device = doing->device;
	record->offset = doing->offset;
	record->length = doing->length;
	record->size_bytes = doing->size_bytes;
	record->waited_ns = doing->waited_ns;
	record->stack = doing->stack;
	record->mode = doing->mode;
	record->flags = doing->flags;
	record->ra_pages = doing->ra_pages;
}

/* Sends a thread's cached reads. Call it before sending other records. */
INLINE void send_batch(struct doing *doing)
{
	struct batch_record *batch = &doing->batch;
	u32 count = batch->record.extra;
	if (!count)
		return;
	u64 last = count - 1 & (BATCH_READS - 1);
	u64 bytes = sizeof(batch->record) + (last + 1) * sizeof(batch->reads[0]);
	if (bpf_ringbuf_output(&events, batch, bytes, BPF_RB_NO_WAKEUP))
		count_lost(0);
	batch->record.extra = 0;
}

INLINE void begin_batch(struct doing *doing, u64 since)
{
	struct profile_record *record = &doing->batch.record;
	u64 who = bpf_get_current_pid_tgid();
	__builtin_memset(record, 0, sizeof(*record));
	describe_call(record, doing);
	record->kind = PROFILE_CACHED;
	record->pid = who >> 32;
	record->tid = (u32)who;
	record->time_ns = since;
}

/* A read call that began at `since` found its data cached. */
INLINE void add_cached(struct doing *doing, u64 since, u32 bytes)
{
	struct batch_record *batch = &doing->batch;
	struct profile_record *record = &batch->record;
	u64 now = bpf_ktime_get_ns();
	if (record->file != doing->file || record->inode != doing->inode ||
	    now - record->time_ns > MAX_BATCH_NS)
		send_batch(doing);
	u32 count = record->extra;
	if (count) {
		struct cached_reads *last = &batch->reads[count - 1 & (BATCH_READS - 1)];
		if (last->bytes == bytes && last->calls < MAX_RUN_CALLS &&
		    last->offset + (u64)bytes * last->calls == doing->offset) {
			last->calls += 1;
			last->end_ns = now - record->time_ns;
			return;
		}
		if (count >= BATCH_READS) {
			send_batch(doing);
			count = 0;
		}
	}
	if (!count)
		begin_batch(doing, since);
	struct cached_reads *next = &batch->reads[count & (BATCH_READS - 1)];
	next->offset = doing->offset;
	next->bytes = bytes;
	next->calls = 1;
	next->start_ns = since - record->time_ns;
	/* Saturates after 2^32 ns (4.3 s), for example if preempted. */
	next->end_ns = now - record->time_ns < ~0U ? now - record->time_ns : ~0U;
	record->extra = count + 1;
}

SEC("tp_btf/sys_enter")
int call_enters(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	u64 call = ctx[1];
	if (call != NR_READ && call != NR_PREAD && call != NR_READV && call != NR_PREADV &&
	    call != NR_MADVISE && call != NR_READAHEAD && call != NR_FADVISE)
		return 0;
	struct doing *doing = current_thread();
	if (!doing)
		return 0;
	doing->call_ns = 0;
	doing->waited_ns = 0;
	doing->reason = REASON_NONE;
	doing->stack = 0;
	doing->detail = 0;
	struct file *file = NULL;
	u64 first = CALL_ARG_0(regs), second = CALL_ARG_1(regs), third = CALL_ARG_2(regs);
	u64 fourth = CALL_ARG_3(regs);
	if (call == NR_MADVISE) {
		doing->file = 0;
		doing->inode = 0;
		doing->inode_address = 0;
		doing->device = 0;
		doing->offset = first;
		doing->length = second;
		doing->detail = third;
	} else if (!(file = remember_file(doing, first))) {
		return 0;
	} else if (call == NR_READ) {
		READ_FIELD(doing->offset, file, f_pos);
		doing->length = third;
	} else if (call == NR_PREAD) {
		doing->length = third;
		doing->offset = fourth;
	} else if (call == NR_PREADV) {
		doing->length = 0;
		doing->offset = fourth;
	} else if (call == NR_READV) {
		READ_FIELD(doing->offset, file, f_pos);
		doing->length = 0;
	} else {
		doing->offset = second;
		doing->length = third;
		doing->detail = call == NR_FADVISE ? fourth : 0;
	}
	if (call == NR_MADVISE || call == NR_READAHEAD || call == NR_FADVISE)
		doing->stack = take_stack(ctx, doing, 0);
	doing->call = call;
	doing->call_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sys_exit")
int call_returns(u64 *ctx)
{
	u64 who = bpf_get_current_pid_tgid();
	u32 tid = (u32)who;
	struct doing *doing = known_thread(tid);
	if (!doing || !doing->call_ns)
		return 0;
	u64 since = doing->call_ns;
	u32 call = doing->call;
	u32 is_advice = call == NR_MADVISE || call == NR_READAHEAD || call == NR_FADVISE;
	u32 is_cached = !is_advice && doing->reason == REASON_NONE && !doing->waited_ns;
	doing->call_ns = 0;
	doing->reason = REASON_NONE;
	if (is_cached && (s64)ctx[1] > 0) {
		add_cached(doing, since, ctx[1]);
		return 0;
	}
	send_batch(doing);
	look_at_file(doing);
	struct profile_record *record =
		begin_record_of(who, is_advice ? PROFILE_ADVICE : PROFILE_READ);
	if (!record)
		return 0;
	record->duration_ns = record->time_ns - since;
	describe_call(record, doing);
	record->result = ctx[1];
	record->detail = is_advice ? doing->detail : call;
	record->extra = is_advice ? call : 0;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}

/* The number of references to an open file: descriptors, mappings, and calls and faults under way. */
INLINE u32 references_to(struct file *file)
{
	s64 count = -1; /* what a failed read leaves: then 0 references are reported */
	if (HAS(file, f_ref)) {
		READ_FIELD(count, file, f_ref.refcnt.counter);
		return count + 1;
	}
	count = 0;
	READ_FIELD(count, file, f_count.counter);
	return count;
}

/* A page event of the current thread. */
INLINE int on_page(u32 kind, struct inode *inode, u64 index, u64 count, struct file_ra_state *ra)
{
	struct doing *doing = current_thread();
	if (!doing)
		return 0;
	send_batch(doing);
	u64 number = 0, file = 0;
	READ_FIELD(number, inode, i_ino);
	u32 device = device_of(inode);
	if (ra)
		file = (u64)ra - __builtin_preserve_field_info(((struct file *)0)->f_ra,
							       FIELD_BYTE_OFFSET);
	if (kind == PROFILE_MISS || kind == PROFILE_MARK || kind == PROFILE_FAULT) {
		doing->page_inode = number;
		doing->page_device = device;
		doing->page_offset = index << 12;
		doing->page_file = file;
		doing->reason = kind == PROFILE_MISS ? REASON_MISS :
				kind == PROFILE_MARK ? REASON_MARK : REASON_FAULT;
		send_name(inode, number, device);
	} else if (doing->reason == REASON_FAULT && doing->page_inode == number) {
		/* A fault that submits pages misses. */
		doing->reason = REASON_MISS;
	}
	struct profile_record *record = begin_record(kind);
	if (!record)
		return 0;
	record->file = file;
	record->inode = number;
	record->device = device;
	record->offset = index << 12;
	record->length = count << 12;
	READ_FIELD(record->size_bytes, inode, i_size);
	if (ra) {
		record->ra_pages = GET(ra, ra_pages, COPIED);
		record->mode = references_to((void *)file);
		if (kind == PROFILE_WINDOW) {
			record->offset = (u64)GET(ra, start, COPIED) << 12;
			record->length = (u64)GET(ra, size, COPIED) << 12;
			record->extra = GET(ra, async_size, COPIED);
		}
	}
	record->flags = doing->call_ns != 0;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/mm_filemap_fault")
int page_fault(u64 *ctx)
{
	struct address_space *mapping = (void *)ctx[0];
	return on_page(PROFILE_FAULT, mapping->host, ctx[1], 1, NULL);
}

SEC("tp_btf/page_cache_sync_ra")
int page_miss(u64 *ctx)
{
	return on_page(PROFILE_MISS, (void *)ctx[0], ctx[1], ctx[3], (void *)ctx[2]);
}

SEC("tp_btf/page_cache_async_ra")
int page_mark(u64 *ctx)
{
	return on_page(PROFILE_MARK, (void *)ctx[0], ctx[1], ctx[3], (void *)ctx[2]);
}

SEC("tp_btf/page_cache_ra_order")
int page_window(u64 *ctx)
{
	return on_page(PROFILE_WINDOW, (void *)ctx[0], ctx[1], 0, (void *)ctx[2]);
}

SEC("tp_btf/page_cache_ra_unbounded")
int page_plain(u64 *ctx)
{
	return on_page(PROFILE_PLAIN, (void *)ctx[0], ctx[1], ctx[2], NULL);
}

/* The same at the entries of functions, for kernels without those tracepoints. */

INLINE int on_request(u32 kind, struct readahead_control *request, u64 count)
{
	return on_page(kind, inode_of(request, COPIED), GET(request, _index, COPIED), count,
		       state_of(request, COPIED));
}

/* do_page_cache_ra() submits all pages: a window if start and size match the state. */
INLINE int on_submit(struct readahead_control *request, u64 count)
{
	struct file_ra_state *ra = state_of(request, COPIED);
	u64 index = GET(request, _index, COPIED);
	if (!ra || GET(ra, start, COPIED) != index || GET(ra, size, COPIED) != count)
		return 0;
	return on_request(PROFILE_WINDOW, request, 0);
}

INLINE int on_fault(struct vm_fault *fault)
{
	struct vm_area_struct *area = GET(fault, vma, COPIED);
	struct file *file = GET(area, vm_file, COPIED);
	struct address_space *mapping = GET(file, f_mapping, COPIED);
	return on_page(PROFILE_FAULT, GET(mapping, host, COPIED), GET(fault, pgoff, COPIED), 1,
		       NULL);
}

SEC("fentry/filemap_fault")
int fault_fentry(u64 *ctx)
{
	return on_fault((void *)ctx[0]);
}

SEC("kprobe/filemap_fault")
int fault_kprobe(struct pt_regs *entry)
{
	return on_fault((void *)arguments_of(entry).request);
}

/* A page of a mapping is touched that is not mapped: what is cached from `first` to `last` will be
 * mapped at once. */
INLINE int send_touch(struct doing *doing, struct inode *inode, u64 index, u64 first, u64 last)
{
	send_batch(doing);
	struct profile_record *record = begin_record(PROFILE_TOUCH);
	if (!record)
		return 0;
	READ_FIELD(record->inode, inode, i_ino);
	READ_FIELD(record->size_bytes, inode, i_size);
	record->device = device_of(inode);
	record->offset = index << 12;
	record->length = last >= index ? (last + 1 - index) << 12 : 1 << 12;
	record->extra = index - first;
	record->flags = doing->call_ns != 0;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}

INLINE int on_touch(struct vm_fault *fault, u64 first, u64 last)
{
	struct doing *doing = current_thread();
	if (!doing)
		return 0;
	struct vm_area_struct *area = GET(fault, vma, COPIED);
	struct file *file = GET(area, vm_file, COPIED);
	struct address_space *mapping = GET(file, f_mapping, COPIED);
	struct inode *inode = GET(mapping, host, COPIED);
	return send_touch(doing, inode, GET(fault, pgoff, COPIED), first, last);
}

SEC("fentry/filemap_map_pages")
int touch_fentry(u64 *ctx)
{
	return on_touch((void *)ctx[0], ARGUMENT(ctx, 1), ARGUMENT(ctx, 2));
}

SEC("kprobe/filemap_map_pages")
int touch_kprobe(struct pt_regs *entry)
{
	struct arguments at = arguments_of(entry);
	return on_touch((void *)at.request, at.second, at.third);
}

INLINE int on_fault_address(u64 address)
{
	struct doing *doing = current_thread();
	if (doing)
		doing->fault_address = address;
	return 0;
}

SEC("tp_btf/page_fault_user")
int user_faults(u64 *ctx)
{
	return on_fault_address(ctx[0]);
}

/* Faults of system calls, not those of a probe that reads a user stack. */
SEC("tp_btf/page_fault_kernel")
int kernel_faults(u64 *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u32 may_not_sleep = 0;
	READ_FIELD(may_not_sleep, task, pagefault_disabled);
	return may_not_sleep ? 0 : on_fault_address(ctx[0]);
}

/* The tracepoint does not say which page was touched. But what is mapped at once begins at a multiple
 * of 16 pages in memory (fault_around_bytes). Where a mapping begins in between, the page may lie
 * behind the end: then it is not known. Each address is used once, because not all that faults is an
 * exception: mlock(2) and MAP_POPULATE are none. */
SEC("tp_btf/mm_filemap_map_pages")
int touch_tracepoint(u64 *ctx)
{
	struct address_space *mapping = (void *)ctx[0];
	u64 first = ctx[1], last = ctx[2];
	struct doing *doing = current_thread();
	if (!doing || !doing->fault_address)
		return 0;
	u64 index = first + ((doing->fault_address >> 12) & 15);
	doing->fault_address = 0;
	return index > last ? 0 : send_touch(doing, mapping->host, index, first, last);
}

/* Before Linux 5.13, the file_ra_state is an additional second argument. */
SEC("fentry/page_cache_sync_ra")
int miss_fentry(u64 *ctx)
{
	u64 count = HAS(readahead_control, ra) ? ARGUMENT(ctx, 1) : ARGUMENT(ctx, 2);
	return on_request(PROFILE_MISS, (void *)ctx[0], count);
}

SEC("kprobe/page_cache_sync_ra")
int miss_kprobe(struct pt_regs *entry)
{
	struct arguments at = arguments_of(entry);
	u64 count = HAS(readahead_control, ra) ? at.second : at.third;
	return on_request(PROFILE_MISS, at.request, count);
}

SEC("fentry/page_cache_async_ra")
int mark_fentry(u64 *ctx)
{
	u64 count = HAS(readahead_control, ra) ? ARGUMENT(ctx, 2) : ARGUMENT(ctx, 3);
	return on_request(PROFILE_MARK, (void *)ctx[0], count);
}

SEC("kprobe/page_cache_async_ra")
int mark_kprobe(struct pt_regs *entry)
{
	struct arguments at = arguments_of(entry);
	u64 count = HAS(readahead_control, ra) ? at.third : at.fourth;
	return on_request(PROFILE_MARK, at.request, count);
}

SEC("fentry/page_cache_ra_order")
int window_fentry(u64 *ctx)
{
	return on_request(PROFILE_WINDOW, (void *)ctx[0], 0);
}

SEC("kprobe/page_cache_ra_order")
int window_kprobe(struct pt_regs *entry)
{
	return on_request(PROFILE_WINDOW, arguments_of(entry).request, 0);
}

SEC("fentry/do_page_cache_ra")
int submit_fentry(u64 *ctx)
{
	return on_submit((void *)ctx[0], ctx[1]);
}

SEC("kprobe/do_page_cache_ra")
int submit_kprobe(struct pt_regs *entry)
{
	struct arguments at = arguments_of(entry);
	return on_submit(at.request, at.second);
}

SEC("fentry/page_cache_ra_unbounded")
int plain_fentry(u64 *ctx)
{
	return on_request(PROFILE_PLAIN, (void *)ctx[0], ctx[1]);
}

SEC("kprobe/page_cache_ra_unbounded")
int plain_kprobe(struct pt_regs *entry)
{
	struct arguments at = arguments_of(entry);
	return on_request(PROFILE_PLAIN, at.request, at.second);
}

/* How many pages a folio has. Its flags are its first word in all kernels. */
INLINE u64 pages_of(struct folio *folio)
{
	u64 flags = 0;
	u32 count = 1;
	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	u32 head = __builtin_preserve_enum_value(*(enum pageflags *)PG_head, ENUM_VALUE);
	if (!(flags >> head & 1))
		return 1;
	if (HAS(folio, _nr_pages))
		READ_FIELD(count, folio, _nr_pages);
	else if (HAS(folio, _folio_nr_pages))
		READ_FIELD(count, folio, _folio_nr_pages);
	return count;
}

/* Any thread evicts, kswapd most of all. Only files that a chosen process has used count. */
SEC("tp_btf/mm_filemap_delete_from_page_cache")
int page_evicted(u64 *ctx)
{
	struct folio *folio = (void *)ctx[0];
	struct address_space *mapping = NULL;
	struct inode *inode = NULL;
	struct file_key key = { 0 };
	u64 index = 0;
	if (HAS(folio, mapping)) {
		READ_FIELD(mapping, folio, mapping);
		READ_FIELD(index, folio, index);
	} else {
		READ_FIELD(mapping, (struct page *)folio, mapping);
		READ_FIELD(index, (struct page *)folio, index);
	}
	READ_FIELD(inode, mapping, host);
	READ_FIELD(key.inode, inode, i_ino);
	key.device = device_of(inode);
	if (!bpf_map_lookup_elem(&sent_names, &key))
		return 0;
	struct profile_record *record = begin_record(PROFILE_EVICT);
	if (!record)
		return 0;
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct doing *doing = known_thread(tid);
	record->inode = key.inode;
	record->device = key.device;
	record->offset = index << 12;
	record->length = pages_of(folio) << 12;
	record->flags = doing && doing->call_ns && doing->call == NR_FADVISE;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}

INLINE u32 waits_for_disk(struct task_struct *task)
{
	u64 word = 0;
	u32 offset = __builtin_preserve_field_info(task->in_iowait, FIELD_BYTE_OFFSET);
	u32 size = __builtin_preserve_field_info(task->in_iowait, FIELD_BYTE_SIZE);
	if (size > sizeof(word))
		return 0;
	bpf_probe_read_kernel(&word, size, (void *)task + offset);
	word <<= __builtin_preserve_field_info(task->in_iowait, FIELD_LSHIFT);
	return word >> __builtin_preserve_field_info(task->in_iowait, FIELD_RSHIFT) != 0;
}

INLINE struct thread_time *time_of(u32 tid, u32 pid, u64 now)
{
	struct thread_time *time = bpf_map_lookup_elem(&times, &tid);
	if (time)
		return time;
	struct thread_time none = { .first_ns = now, .last_ns = now, .pid = pid };
	bpf_map_update_elem(&times, &tid, &none, 0);
	return bpf_map_lookup_elem(&times, &tid);
}

/* State flag of a thread that has exited (include/linux/sched.h). */
#define TASK_DEAD 0x80
/* State flag: a fatal signal ends the wait. */
#define TASK_WAKEKILL 0x100

/* A profiled thread stops running, to wait in `state` unless that is 0: current is still that
 * thread. */
INLINE void leaves(u64 *ctx, struct task_struct *from, u64 state, u64 now)
{
	struct doing *doing = current_thread();
	if (!doing)
		return;
	struct thread_time *time = time_of(from->pid, from->tgid, now);
	if (time) {
		if (now > time->last_ns)
			time->cpu_ns += now - time->last_ns;
		time->last_ns = now;
		READ_FIELD(time->comm, from, comm);
	}
	doing->wake_ns = 0;
	doing->out_ns = now;
	doing->in_iowait = 0;
	if (state & TASK_DEAD) {
		send_batch(doing);
		doing->tid = 0;
		return;
	}
	if (!state) {
		doing->wake_ns = now;
		doing->wait_stack = 0;
		return;
	}
	doing->in_iowait = waits_for_disk(from);
	/* Within a read call, only waits for pages can be ended by a signal that kills and count as
	 * waits for a disk. */
	u32 is_of_page = doing->call_ns && doing->in_iowait && state & TASK_WAKEKILL;
	doing->wait_stack = take_stack(ctx, doing, is_of_page ? doing->reason : REASON_NONE);
}

INLINE void send_wait(struct doing *doing, struct task_struct *to, u64 blocked, u64 runnable)
{
	struct profile_record *record = begin_record(PROFILE_WAIT);
	if (!record)
		return;
	record->pid = to->tgid;
	record->tid = to->pid;
	record->duration_ns = blocked;
	record->result = runnable;
	record->stack = doing->wait_stack;
	record->in_iowait = doing->in_iowait;
	record->detail = doing->reason;
	if (doing->reason) {
		record->inode = doing->page_inode;
		record->device = doing->page_device;
		record->offset = doing->page_offset;
		record->file = doing->page_file;
	} else if (doing->call_ns) {
		record->inode = doing->inode;
		record->device = doing->device;
		record->offset = doing->offset;
		record->length = doing->length;
	}
	if (doing->call_ns) {
		record->mode = doing->mode;
		record->flags = doing->flags;
		if (!record->file && record->inode == doing->inode)
			record->file = doing->file;
	}
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* A context switch. `state` is the state of the previous thread. */
INLINE int on_switch(u64 *ctx, u64 state)
{
	u32 preempted = ctx[0];
	struct task_struct *from = (void *)ctx[1];
	struct task_struct *to = (void *)ctx[2];
	u64 now = bpf_ktime_get_ns();
	leaves(ctx, from, preempted ? 0 : state, now);
	u32 tid = to->pid;
	struct doing *doing = known_thread(tid);
	if (!doing)
		return 0;
	struct thread_time *time = bpf_map_lookup_elem(&times, &tid);
	u64 since = doing->out_ns;
	doing->out_ns = 0;
	if (!since) {
		if (time)
			time->last_ns = now;
		return 0;
	}
	u64 woken = doing->wake_ns ? doing->wake_ns : now;
	u64 blocked = woken > since ? woken - since : 0;
	u64 runnable = now - since - blocked;
	if (time) {
		time->blocked_ns += blocked;
		time->runnable_ns += runnable;
		time->last_ns = now;
	}
	if (!doing->wait_stack)
		return 0;
	doing->waited_ns += blocked;
	send_wait(doing, to, blocked, runnable);
	return 0;
}

SEC("tp_btf/sched_switch")
int thread_switches(u64 *ctx)
{
	return on_switch(ctx, ctx[3]);
}

/* Before Linux 5.18 the state is no argument. It may have changed since: then the thread was woken
 * at once. */
SEC("tp_btf/sched_switch")
int thread_switches_3(u64 *ctx)
{
	struct task_struct *from = (void *)ctx[1];
	u64 state = HAS(task_struct, __state) ? GET(from, __state, COPIED) :
						(u64)GET(from, state, COPIED);
	return on_switch(ctx, state);
}

SEC("tp_btf/sched_wakeup")
int thread_wakes(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 tid = task->pid;
	struct doing *doing = known_thread(tid);
	if (doing && doing->out_ns && !doing->wake_ns)
		doing->wake_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_process_fork")
int process_forks(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0];
	struct task_struct *child = (void *)ctx[1];
	u32 zero = 0, one = 1, mother = parent->tgid, pid = child->tgid;
	struct profile_config *choice = bpf_map_lookup_elem(&config, &zero);
	if (!choice || choice->mode != MODE_PROCESSES || mother == pid)
		return 0;
	if (mother == choice->spawner || bpf_map_lookup_elem(&targets, &mother))
		bpf_map_update_elem(&targets, &pid, &one, 0);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int thread_exits(u64 *ctx)
{
	(void)ctx;
	u32 tid = (u32)bpf_get_current_pid_tgid();
	u64 now = bpf_ktime_get_ns();
	/* A thread that is not profiled may have the ID of one that exited. */
	struct doing *doing = known_thread(tid);
	if (!doing)
		return 0;
	struct thread_time *time = bpf_map_lookup_elem(&times, &tid);
	if (time && now > time->last_ns) {
		time->cpu_ns += now - time->last_ns;
		time->last_ns = now;
	}
	send_batch(doing);
	return 0;
}

SEC("tp_btf/block_io_start")
int request_starts(u64 *ctx)
{
	u64 key = ctx[0], who = bpf_get_current_pid_tgid();
	struct task_struct *task = (void *)bpf_get_current_task();
	struct mm_struct *mm = NULL;
	READ_FIELD(mm, task, mm);
	if (!mm)
		return 0;
	struct requester requester = {
		.time_ns = bpf_ktime_get_ns(),
		.pid = who >> 32,
		.tid = (u32)who,
		.is_profiled = is_target(who >> 32),
	};
	bpf_get_current_comm(requester.comm, sizeof(requester.comm));
	bpf_map_update_elem(&requesters, &key, &requester, 0);
	return 0;
}

INLINE void not_in_flight(u32 device)
{
	s64 *count = bpf_map_lookup_elem(&in_flight, &device);
	if (count)
		__sync_fetch_and_add(count, -1);
}

SEC("tp_btf/block_rq_issue")
int request_issued(u64 *ctx)
{
	struct request *request = (void *)ctx[0];
	struct block_device *part = request->part;
	u64 key = (u64)request;
	if (!part || !request->__data_len)
		return 0;
	/* The driver had no room, and gets it again: that is one request still. At another sector it is
	 * another one, and the end of the last was missed: it interrupted the same probe at work. */
	struct issued *last = bpf_map_lookup_elem(&requests, &key);
	if (last && last->sector == request->__sector)
		return 0;
	if (last)
		not_in_flight(last->device);
	u32 device = DEVICE_OF_PART(part);
	s64 none = 0, *count = bpf_map_lookup_elem(&in_flight, &device);
	if (!count) {
		bpf_map_update_elem(&in_flight, &device, &none, 0);
		count = bpf_map_lookup_elem(&in_flight, &device);
		if (!count)
			return 0;
	}
	s64 before = __sync_fetch_and_add(count, 1);
	struct issued issued = {
		.time_ns = bpf_ktime_get_ns(),
		.sector = request->__sector,
		.bytes = request->__data_len,
		.in_flight = before > 0 ? before + 1 : 1,
		.device = device,
	};
	if (bpf_map_update_elem(&requests, &key, &issued, 0))
		not_in_flight(device);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int request_completes(u64 *ctx)
{
	struct request *request = (void *)ctx[0];
	u64 key = (u64)request;
	struct issued *issued = bpf_map_lookup_elem(&requests, &key);
	if (!issued)
		return 0;
	u32 device = issued->device;
	not_in_flight(device);
	struct profile_record *record = begin_record(PROFILE_REQUEST);
	if (record) {
		record->duration_ns = record->time_ns - issued->time_ns;
		record->offset = issued->sector;
		record->length = issued->bytes;
		record->device = device;
		record->mode = request->cmd_flags & REQ_OP_MASK;
		record->flags = issued->in_flight;
		record->extra = REQUESTER_UNKNOWN;
		struct requester *requester = bpf_map_lookup_elem(&requesters, &key);
		if (requester) {
			if (issued->time_ns > requester->time_ns)
				record->waited_ns = issued->time_ns - requester->time_ns;
			record->pid = requester->pid;
			record->tid = requester->tid;
			record->extra = requester->is_profiled ? REQUESTER_PROFILED :
								 REQUESTER_OTHER;
			__builtin_memcpy(record->comm, requester->comm, sizeof(record->comm));
		}
		bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	}
	bpf_map_delete_elem(&requests, &key);
	bpf_map_delete_elem(&requesters, &key);
	return 0;
}

INLINE int on_uring_read(struct io_kiocb *request, u32 which)
{
	u8 operation = 0;
	READ_FIELD(operation, request, opcode);
	if (operation != IORING_OP_READV && operation != IORING_OP_READ_FIXED &&
	    operation != IORING_OP_READ)
		return 0;
	if (!is_target(bpf_get_current_pid_tgid() >> 32))
		return 0;
	u64 *count = bpf_map_lookup_elem(&uring_reads, &which);
	if (count)
		*count += 1;
	return 0;
}

SEC("tp_btf/io_uring_submit_req")
int uring_submits(u64 *ctx)
{
	return on_uring_read((void *)ctx[0], 0);
}

SEC("tp_btf/io_uring_queue_async_work")
int uring_punts(u64 *ctx)
{
	return on_uring_read((void *)ctx[0], 1);
}
