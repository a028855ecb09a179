/* Lists open files: each program runs once for each descriptor, or mapping, of each process, and once
 * more at the end. */
#include "kernel.h"
#include "records.h"

char LICENSE[] SEC("license") = "GPL";

#define VM_EXEC 4

/* The bdi that a file's window comes from, as inode_to_bdi() of the kernel finds it. */
INLINE const struct backing_dev_info *bdi_of(struct inode *inode, u32 kind)
{
	if (kind != S_IFBLK)
		return inode->i_sb->s_bdi;
	u64 behind = __builtin_preserve_field_info(((struct bdev_inode *)0)->vfs_inode,
						   FIELD_BYTE_OFFSET);
	const struct block_device *bdev = (void *)inode - behind;
	struct gendisk *disk = NULL;
	struct backing_dev_info *bdi = NULL;
	bpf_probe_read_kernel(&disk, sizeof(disk), &bdev->bd_disk);
	if (!disk)
		return NULL;
	if (HAS(gendisk, bdi)) {
		bpf_probe_read_kernel(&bdi, sizeof(bdi), &disk->bdi);
		return bdi;
	}
	struct request_queue *queue = NULL;
	bpf_probe_read_kernel(&queue, sizeof(queue), &disk->queue);
	if (queue)
		bpf_probe_read_kernel(&bdi, sizeof(bdi), &queue->backing_dev_info);
	return bdi;
}

/* Completes and writes `record`, in which the caller has set the descriptor or mapping. */
INLINE void hand_out(struct bpf_iter_meta *meta, struct task_struct *task, struct file *file,
		     struct open_file_record *record)
{
	u32 kind = file->f_inode->i_mode & S_IFMT;
	if (kind != S_IFREG && kind != S_IFBLK)
		return;
	/* For a disk, f_inode is its /dev node; the mapping's inode has the rest. */
	struct inode *inode = file->f_mapping->host;
	record->file = (u64)file;
	record->inode = file->f_inode->i_ino;
	record->size_bytes = inode->i_size;
	record->position_bytes = file->f_pos;
	record->cgroup = task->cgroups->dfl_cgrp->kn->id;
	record->device = kind == S_IFBLK ? inode->i_rdev : inode->i_sb->s_dev;
	record->pid = task->tgid;
	record->uid = task->real_cred->uid.val;
	record->mode = file->f_mode;
	record->flags = file->f_flags;
	record->ra_pages = file->f_ra.ra_pages;
	record->previous_bytes = file->f_ra.prev_pos;
	record->kind = kind;
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), task->group_leader->comm);
	const struct backing_dev_info *bdi = bdi_of(inode, kind);
	if (bdi) {
		unsigned long ra_pages = 0;
		bpf_probe_read_kernel(&ra_pages, sizeof(ra_pages), &bdi->ra_pages);
		record->bdi_ra_pages = ra_pages;
		bpf_probe_read_kernel_str(record->bdi, sizeof(record->bdi), bdi->dev_name);
	}
	bpf_seq_write(meta->seq, record, sizeof(*record));
}

SEC("iter/task_file")
int list_open_files(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct open_file_record record = { .fd = ctx->fd };
	if (task && file)
		hand_out(ctx->meta, task, file, &record);
	return 0;
}

SEC("iter/task_vma")
int list_mapped_files(struct bpf_iter__task_vma *ctx)
{
	struct task_struct *task = ctx->task;
	struct vm_area_struct *area = ctx->vma;
	if (!task || !area)
		return 0;
	struct file *file = area->vm_file;
	struct open_file_record record = {
		.map_start = area->vm_start,
		.map_end = area->vm_end,
		.executable = (area->vm_flags & VM_EXEC) != 0,
	};
	if (file)
		hand_out(ctx->meta, task, file, &record);
	return 0;
}
