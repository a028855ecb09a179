/* Lists every open file: run once for each descriptor of each process, and once more at the end. */
#include "kernel.h"
#include "records.h"

char LICENSE[] SEC("license") = "GPL";

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

SEC("iter/task_file")
int list_open_files(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	if (!task || !file)
		return 0;
	u32 kind = file->f_inode->i_mode & S_IFMT;
	if (kind != S_IFREG && kind != S_IFBLK)
		return 0;
	/* Of a disk, the node in /dev says its name and the mapping's inode all else. */
	struct inode *inode = file->f_mapping->host;
	struct open_file_record record = {
		.file = (u64)file,
		.inode = file->f_inode->i_ino,
		.size_bytes = inode->i_size,
		.position_bytes = file->f_pos,
		.cgroup = task->cgroups->dfl_cgrp->kn->id,
		.device = kind == S_IFBLK ? inode->i_rdev : inode->i_sb->s_dev,
		.pid = task->tgid,
		.fd = ctx->fd,
		.uid = task->real_cred->uid.val,
		.mode = file->f_mode,
		.flags = file->f_flags,
		.ra_pages = file->f_ra.ra_pages,
		.previous_bytes = file->f_ra.prev_pos,
		.kind = kind,
	};
	bpf_probe_read_kernel_str(record.comm, sizeof(record.comm), task->group_leader->comm);
	const struct backing_dev_info *bdi = bdi_of(inode, kind);
	if (bdi) {
		unsigned long ra_pages = 0;
		bpf_probe_read_kernel(&ra_pages, sizeof(ra_pages), &bdi->ra_pages);
		record.bdi_ra_pages = ra_pages;
		bpf_probe_read_kernel_str(record.bdi, sizeof(record.bdi), bdi->dev_name);
	}
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
