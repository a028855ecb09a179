/* Access samples: every read and fault of chosen files, also those that find their pages in the
 * cache. Attached only while files are chosen, and bounded by a number of samples for each. */
#include "kernel.h"
#include "records.h"

char LICENSE[] SEC("license") = "GPL";

/* How many samples may still be taken of a file. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_HASH);
	MAP_INT(max_entries, SAMPLED_FILES);
	MAP_TYPE(key, struct inode_key);
	MAP_TYPE(value, u64);
} sampled SEC(".maps");

/* A bitmap of sampled inode numbers modulo 64: skips most other files early. */
struct {
	MAP_INT(type, BPF_MAP_TYPE_ARRAY);
	MAP_INT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} sampled_bits SEC(".maps");

struct {
	MAP_INT(type, BPF_MAP_TYPE_RINGBUF);
	MAP_INT(max_entries, 1 << 20);
} samples SEC(".maps");

INLINE int on_access(u32 kind, struct address_space *mapping, u64 first, u64 last)
{
	struct inode *inode = mapping->host;
	u64 number = inode->i_ino;
	u32 zero = 0;
	u64 *bits = bpf_map_lookup_elem(&sampled_bits, &zero);
	if (!bits || !(*bits >> (number & 63) & 1))
		return 0;
	struct inode_key key = {
		.inode = number,
		.device = (inode->i_mode & S_IFMT) == S_IFBLK ? inode->i_rdev : inode->i_sb->s_dev,
	};
	u64 *left = bpf_map_lookup_elem(&sampled, &key);
	/* Two readers may take one sample more. */
	if (!left || !*left)
		return 0;
	*left -= 1;
	struct sample_record *sample = bpf_ringbuf_reserve(&samples, sizeof(*sample), 0);
	if (!sample)
		return 0;
	u64 who = bpf_get_current_pid_tgid();
	sample->time_ns = bpf_ktime_get_ns();
	sample->inode = number;
	sample->first = first;
	sample->last = last;
	sample->device = key.device;
	sample->pid = who >> 32;
	sample->tid = (u32)who;
	sample->kind = kind;
	bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/mm_filemap_get_pages")
int read_tp_btf(u64 *ctx)
{
	return on_access(SAMPLE_READ, (void *)ctx[0], ctx[1], ctx[2]);
}

SEC("tp_btf/mm_filemap_fault")
int fault_tp_btf(u64 *ctx)
{
	return on_access(SAMPLE_FAULT, (void *)ctx[0], ctx[1], ctx[1]);
}

SEC("tp_btf/mm_filemap_map_pages")
int map_tp_btf(u64 *ctx)
{
	return on_access(SAMPLE_MAPPED, (void *)ctx[0], ctx[1], ctx[2]);
}
