/* Read-ahead as it happens. None of this runs for a read that finds its pages in the cache. */
#include "kernel.h"
#include "records.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	MAP_INT(type, BPF_MAP_TYPE_RINGBUF);
	MAP_INT(max_entries, 4 << 20);
} events SEC(".maps");

/* Events that found the ring full. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_ARRAY);
	MAP_INT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} lost SEC(".maps");

/* Requests to read, by device and size. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_PERCPU_HASH);
	MAP_INT(max_entries, 4096);
	MAP_TYPE(key, struct size_key);
	MAP_TYPE(value, u64);
} sizes SEC(".maps");

/* Open files whose misses are reported at once: foreread prefetches while the reader waits. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_HASH);
	MAP_INT(max_entries, 256);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, u32);
} watched SEC(".maps");

/* Files, open or not, whose next miss is reported at once. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_HASH);
	MAP_INT(max_entries, AWAITED_FILES);
	MAP_TYPE(key, struct inode_key);
	MAP_TYPE(value, u32);
} awaited SEC(".maps");

struct {
	MAP_INT(type, BPF_MAP_TYPE_RINGBUF);
	MAP_INT(max_entries, 64 << 10);
} misses SEC(".maps");

/* Misses that found their ring full. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_ARRAY);
	MAP_INT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} untold SEC(".maps");

/* What a thread is reading: known from its last miss or mark. */
struct reading {
	u64 ra;        /* file_ra_state of the last miss or mark; 0 after submission */
	u64 file;
	u64 inode;
	u64 index;
	u64 window;    /* the last window submitted for it, */
	u64 window_end;
	u64 since_ns;  /* since when it waits; 0 if it does not */
	u32 device;
	u32 pid;
};

struct {
	MAP_INT(type, BPF_MAP_TYPE_LRU_HASH);
	MAP_INT(max_entries, 16384);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct reading);
} readers SEC(".maps");

INLINE void count_one(void *counts)
{
	u32 zero = 0;
	u64 *count = bpf_map_lookup_elem(counts, &zero);
	if (count)
		__sync_fetch_and_add(count, 1);
}

INLINE struct event_record *begin_event(u32 kind)
{
	struct event_record *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		count_one(&lost);
		return NULL;
	}
	u64 who = bpf_get_current_pid_tgid();
	__builtin_memset(event, 0, sizeof(*event));
	event->kind = kind;
	event->time_ns = bpf_ktime_get_ns();
	event->pid = who >> 32;
	event->tid = (u32)who;
	event->cgroup = bpf_get_current_cgroup_id();
	bpf_get_current_comm(event->comm, sizeof(event->comm));
	return event;
}

INLINE u32 device_of(struct inode *inode, u32 copied)
{
	if ((GET(inode, i_mode, copied) & S_IFMT) == S_IFBLK)
		return GET(inode, i_rdev, copied);
	struct super_block *super = GET(inode, i_sb, copied);
	return GET(super, s_dev, copied);
}

/* The state lies within the open file. A few file systems have states elsewhere, too; such an
 * address is that of no open file, and nobody finds it among them. */
INLINE u64 file_of(struct file_ra_state *ra)
{
	return (u64)ra - __builtin_preserve_field_info(((struct file *)0)->f_ra, FIELD_BYTE_OFFSET);
}

/* Whether the file is awaited; it no longer is then. Of two readers, one gets the answer. */
INLINE u32 ends_await(const struct reading *reading)
{
	struct inode_key key = { .inode = reading->inode, .device = reading->device };
	return bpf_map_lookup_elem(&awaited, &key) && !bpf_map_delete_elem(&awaited, &key);
}

/* Reports a miss immediately. */
INLINE void tell_miss(const struct reading *reading, u32 tid, u64 count)
{
	struct miss_record *miss = bpf_ringbuf_reserve(&misses, sizeof(*miss), 0);
	if (!miss) {
		count_one(&untold);
		return;
	}
	miss->time_ns = bpf_ktime_get_ns();
	miss->file = reading->file;
	miss->inode = reading->inode;
	miss->index = reading->index;
	miss->count = count;
	miss->device = reading->device;
	miss->pid = reading->pid;
	miss->tid = tid;
	miss->zero = 0;
	bpf_ringbuf_submit(miss, BPF_RB_FORCE_WAKEUP);
}

/* A miss or a mark. */
INLINE int on_reader(u32 kind, struct inode *inode, u64 index, struct file_ra_state *ra, u64 count,
		     u32 copied)
{
	struct reading reading = {
		.ra = (u64)ra,
		.file = file_of(ra),
		.inode = GET(inode, i_ino, copied),
		.index = index,
		.device = device_of(inode, copied),
	};
	u64 who = bpf_get_current_pid_tgid();
	u32 tid = (u32)who;
	reading.pid = who >> 32;
	if (kind == EVENT_MISS &&
	    (ends_await(&reading) || bpf_map_lookup_elem(&watched, &reading.file)))
		tell_miss(&reading, tid, count);
	bpf_map_update_elem(&readers, &tid, &reading, 0);
	struct event_record *event = begin_event(kind);
	if (!event)
		return 0;
	event->file = reading.file;
	event->inode = reading.inode;
	event->device = reading.device;
	event->index = index;
	event->count = count;
	event->start = GET(ra, start, copied);
	event->size = GET(ra, size, copied);
	event->async_size = GET(ra, async_size, copied);
	event->ra_pages = GET(ra, ra_pages, copied);
	event->previous_bytes = GET(ra, prev_pos, copied);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

/* A window. Where no miss or mark of this thread asked for it, a fault of a mapped file did. */
INLINE int on_window(struct inode *inode, u64 index, struct file_ra_state *ra, u32 copied)
{
	u64 start = GET(ra, start, copied);
	u32 size = GET(ra, size, copied);
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct reading *reading = bpf_map_lookup_elem(&readers, &tid);
	u32 asked = reading && reading->ra == (u64)ra;
	if (asked) {
		reading->ra = 0;
		reading->window = start;
		reading->window_end = start + size;
	} else {
		struct reading mapped = {
			.window = start,
			.window_end = start + size,
			.file = file_of(ra),
			.inode = GET(inode, i_ino, copied),
			.index = index,
			.device = device_of(inode, copied),
		};
		mapped.pid = bpf_get_current_pid_tgid() >> 32;
		if (ends_await(&mapped))
			tell_miss(&mapped, tid, size);
		bpf_map_update_elem(&readers, &tid, &mapped, 0);
	}
	struct event_record *event = begin_event(EVENT_WINDOW);
	if (!event)
		return 0;
	event->file = file_of(ra);
	event->inode = GET(inode, i_ino, copied);
	event->device = device_of(inode, copied);
	event->index = index;
	event->count = size;
	event->start = start;
	event->size = size;
	event->async_size = GET(ra, async_size, copied);
	event->ra_pages = GET(ra, ra_pages, copied);
	event->mapped = !asked;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Pages that are no window. After a miss they are what the reader asked for, and else somebody
 * asked for them by readahead(2), fadvise or madvise; or they are the rest of a window that found
 * some of its pages cached. */
INLINE int on_plain(struct inode *inode, u64 index, u64 count, u32 copied)
{
	u64 number = GET(inode, i_ino, copied);
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct reading *reading = bpf_map_lookup_elem(&readers, &tid);
	u64 file = 0;
	if (reading && reading->inode == number) {
		if (reading->ra)
			file = reading->file;
		else if (index >= reading->window && index < reading->window_end)
			return 0;
		reading->ra = 0;
	}
	struct event_record *event = begin_event(EVENT_PLAIN);
	if (!event)
		return 0;
	event->file = file;
	event->inode = number;
	event->device = device_of(inode, copied);
	event->index = index;
	event->count = count;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Whether a task waits for a disk. Loaded without a helper: it runs at every switch of tasks, and
 * nothing else does where neither task waits. */
INLINE u32 waits_for_disk(struct task_struct *task)
{
	const void *word = (void *)task +
			   __builtin_preserve_field_info(task->in_iowait, FIELD_BYTE_OFFSET);
	u64 bits = 0;
	switch (__builtin_preserve_field_info(task->in_iowait, FIELD_BYTE_SIZE)) {
	case 1:
		bits = *(const u8 *)word;
		break;
	case 2:
		bits = *(const u16 *)word;
		break;
	case 4:
		bits = *(const u32 *)word;
		break;
	case 8:
		bits = *(const u64 *)word;
		break;
	}
	bits <<= __builtin_preserve_field_info(task->in_iowait, FIELD_LSHIFT);
	return bits >> __builtin_preserve_field_info(task->in_iowait, FIELD_RSHIFT) != 0;
}

SEC("tp_btf/sched_switch")
int switch_tp_btf(u64 *ctx)
{
	struct task_struct *from = (void *)ctx[1];
	struct task_struct *to = (void *)ctx[2];
	struct reading *reading;
	u32 tid;
	if (waits_for_disk(from)) {
		tid = from->pid;
		reading = bpf_map_lookup_elem(&readers, &tid);
		if (reading)
			reading->since_ns = bpf_ktime_get_ns();
	}
	/* Its flag is still set: the task clears it itself. */
	if (!waits_for_disk(to))
		return 0;
	tid = to->pid;
	reading = bpf_map_lookup_elem(&readers, &tid);
	if (!reading || !reading->since_ns)
		return 0;
	u64 since = reading->since_ns;
	reading->since_ns = 0;
	struct event_record *event = begin_event(EVENT_STALL);
	if (!event)
		return 0;
	event->count = event->time_ns - since;
	event->file = reading->file;
	event->inode = reading->inode;
	event->device = reading->device;
	event->index = reading->index;
	event->pid = reading->pid;
	event->tid = tid;
	event->cgroup = to->cgroups->dfl_cgrp->kn->id;
	bpf_probe_read_kernel_str(event->comm, sizeof(event->comm), to->comm);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

/* A request on its way to its driver. Devices that have none of their own, as of md, are not seen
 * here, but those below them. */
SEC("tp_btf/block_rq_issue")
int size_tp_btf(u64 *ctx)
{
	struct request *request = (void *)ctx[0];
	struct block_device *part = request->part;
	if (!part || (request->cmd_flags & REQ_OP_MASK) != REQ_OP_READ || !request->__data_len)
		return 0;
	struct size_key key = { .device = DEVICE_OF_PART(part) };
	u32 blocks = (request->__data_len - 1) >> 12;
	for (int bit = 0; bit < SIZE_BUCKETS - 1 && blocks >> bit; bit++)
		key.bucket = bit + 1;
	u64 *count = bpf_map_lookup_elem(&sizes, &key);
	u64 one = 1;
	if (count)
		*count += 1;
	else
		bpf_map_update_elem(&sizes, &key, &one, 0);
	return 0;
}

/* Hooks: tracepoints pass the inode, functions a readahead_control. */

/* A miss or a mark, from the entry of its function. */
INLINE int on_request(u32 kind, struct readahead_control *request, u64 count, u32 copied)
{
	struct file_ra_state *ra = state_of(request, copied);
	if (!ra)
		return 0;
	return on_reader(kind, inode_of(request, copied), GET(request, _index, copied), ra, count,
			 copied);
}

/* do_page_cache_ra() submits all pages: a window if start and size match the state. */
INLINE int on_submit(struct readahead_control *request, u64 count, u32 copied)
{
	struct file_ra_state *ra = state_of(request, copied);
	u64 index = GET(request, _index, copied);
	if (!ra || GET(ra, start, copied) != index || GET(ra, size, copied) != count)
		return 0;
	return on_window(inode_of(request, copied), index, ra, copied);
}

SEC("tp_btf/page_cache_sync_ra")
int miss_tp_btf(u64 *ctx)
{
	return on_reader(EVENT_MISS, (void *)ctx[0], ctx[1], (void *)ctx[2], ctx[3], LOADED);
}

SEC("tp_btf/page_cache_async_ra")
int mark_tp_btf(u64 *ctx)
{
	return on_reader(EVENT_MARK, (void *)ctx[0], ctx[1], (void *)ctx[2], ctx[3], LOADED);
}

SEC("tp_btf/page_cache_ra_order")
int window_tp_btf(u64 *ctx)
{
	return on_window((void *)ctx[0], ctx[1], (void *)ctx[2], LOADED);
}

SEC("tp_btf/page_cache_ra_unbounded")
int plain_tp_btf(u64 *ctx)
{
	return on_plain((void *)ctx[0], ctx[1], ctx[2], LOADED);
}

/* Before Linux 5.13, the file_ra_state is an additional second argument. */
SEC("fentry/page_cache_sync_ra")
int miss_fentry(u64 *ctx)
{
	u64 count = HAS(readahead_control, ra) ? ARGUMENT(ctx, 1) : ARGUMENT(ctx, 2);
	return on_request(EVENT_MISS, (void *)ctx[0], count, LOADED);
}

SEC("fentry/page_cache_async_ra")
int mark_fentry(u64 *ctx)
{
	u64 count = HAS(readahead_control, ra) ? ARGUMENT(ctx, 2) : ARGUMENT(ctx, 3);
	return on_request(EVENT_MARK, (void *)ctx[0], count, LOADED);
}

SEC("fentry/page_cache_ra_order")
int window_fentry(u64 *ctx)
{
	struct readahead_control *request = (void *)ctx[0];
	return on_window(inode_of(request, LOADED), request->_index, (void *)ctx[1], LOADED);
}

SEC("fentry/do_page_cache_ra")
int submit_fentry(u64 *ctx)
{
	return on_submit((void *)ctx[0], ctx[1], LOADED);
}

SEC("fentry/page_cache_ra_unbounded")
int plain_fentry(u64 *ctx)
{
	struct readahead_control *request = (void *)ctx[0];
	return on_plain(inode_of(request, LOADED), request->_index, ctx[1], LOADED);
}

SEC("kprobe/page_cache_sync_ra")
int miss_kprobe(struct pt_regs *entry)
{
	struct arguments at = arguments_of(entry);
	u64 count = HAS(readahead_control, ra) ? at.second : at.third;
	return on_request(EVENT_MISS, at.request, count, COPIED);
}

SEC("kprobe/page_cache_async_ra")
int mark_kprobe(struct pt_regs *entry)
{
	struct arguments at = arguments_of(entry);
	u64 count = HAS(readahead_control, ra) ? at.third : at.fourth;
	return on_request(EVENT_MARK, at.request, count, COPIED);
}

SEC("kprobe/page_cache_ra_order")
int window_kprobe(struct pt_regs *entry)
{
	struct arguments at = arguments_of(entry);
	u64 index = GET(at.request, _index, COPIED);
	return on_window(inode_of(at.request, COPIED), index, (void *)at.second, COPIED);
}

SEC("kprobe/do_page_cache_ra")
int submit_kprobe(struct pt_regs *entry)
{
	struct arguments at = arguments_of(entry);
	return on_submit(at.request, at.second, COPIED);
}

SEC("kprobe/page_cache_ra_unbounded")
int plain_kprobe(struct pt_regs *entry)
{
	struct arguments at = arguments_of(entry);
	u64 index = GET(at.request, _index, COPIED);
	return on_plain(inode_of(at.request, COPIED), index, at.second, COPIED);
}
