/* Lists open files: each program runs once for each descriptor, or mapping, of each process, and once
 * more at the end. */
#include "kernel.h"
#include "records.h"

char LICENSE[] SEC("license") = "GPL";

#define VM_EXEC 4

/* The bdi that a file's window comes from, as inode_to_bdi() of the kernel finds it. */
INLINE struct backing_dev_info *bdi_of(struct inode *inode, u32 kind, u32 copied)
{
	if (kind != S_IFBLK) {
		struct super_block *super = GET(inode, i_sb, copied);
		return GET(super, s_bdi, copied);
	}
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

/* Completes and writes `record`, in which the caller has set all that is not read from `file`. */
INLINE void hand_out(struct bpf_iter_meta *meta, struct file *file, u32 copied,
		     struct open_file_record *record)
{
	struct inode *named = GET(file, f_inode, copied);
	u32 kind = GET(named, i_mode, copied) & S_IFMT;
	if (kind != S_IFREG && kind != S_IFBLK)
		return;
	/* For a disk, f_inode is its /dev node; the mapping's inode has the rest. */
	struct address_space *mapping = GET(file, f_mapping, copied);
	struct inode *inode = GET(mapping, host, copied);
	struct super_block *super = GET(inode, i_sb, copied);
	record->file = (u64)file;
	record->inode = GET(named, i_ino, copied);
	record->size_bytes = GET(inode, i_size, copied);
	record->device = kind == S_IFBLK ? GET(inode, i_rdev, copied) : GET(super, s_dev, copied);
	record->mode = GET(file, f_mode, copied);
	record->ra_pages = GET(file, f_ra.ra_pages, copied);
	record->previous_bytes = GET(file, f_ra.prev_pos, copied);
	record->kind = kind;
	struct backing_dev_info *bdi = bdi_of(inode, kind, copied);
	if (bdi) {
		record->bdi_ra_pages = GET(bdi, ra_pages, COPIED);
		bpf_probe_read_kernel_str(record->bdi, sizeof(record->bdi), bdi->dev_name);
	}
	bpf_seq_write(meta->seq, record, sizeof(*record));
}

/* The device of the overlayfs that a regular file is on; 0 if it is on another file system. */
INLINE u32 overlay_of(struct file *file, u32 copied)
{
	struct inode *inode = GET(file, f_inode, copied);
	struct super_block *super = GET(inode, i_sb, copied);
	if ((GET(inode, i_mode, copied) & S_IFMT) != S_IFREG ||
	    GET(super, s_magic, copied) != OVERLAYFS_SUPER_MAGIC)
		return 0;
	return GET(super, s_dev, copied);
}

/* The open file on a layer from which an open file on overlayfs is read. NULL if it has none, as
 * with O_PATH. */
INLINE struct file *layer_of(struct file *file, u32 copied)
{
	void *layers = GET(file, private_data, copied);
	/* Since Linux 6.13, as f_ref, `private_data` is a structure. It begins with the open file and
	 * the one that replaces it after the file was copied to the upper layer. The types of a
	 * module are not looked up, so the structure is not declared. */
	if (!HAS(file, f_ref) || !layers)
		return layers;
	struct file *first_and_copy[2] = {};
	bpf_probe_read_kernel(first_and_copy, sizeof(first_and_copy), layers);
	return first_and_copy[1] ? first_and_copy[1] : first_and_copy[0];
}

/* Lists an open file of a process. One on overlayfs is listed as the open file that is read instead:
 * that one has the window, and advice on the descriptor goes to it. */
INLINE void list(struct bpf_iter_meta *meta, struct task_struct *task, struct file *file,
		 struct open_file_record *record)
{
	record->position_bytes = file->f_pos;
	record->flags = file->f_flags;
	record->cgroup = task->cgroups->dfl_cgrp->kn->id;
	record->pid = task->tgid;
	record->uid = task->real_cred->uid.val;
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), task->group_leader->comm);
	record->overlay = overlay_of(file, LOADED);
	struct file *layer = record->overlay ? layer_of(file, LOADED) : NULL;
	/* A layer may be an overlay itself. The kernel allows two. */
	if (layer && overlay_of(layer, COPIED))
		layer = layer_of(layer, COPIED);
	if (layer)
		hand_out(meta, layer, COPIED, record);
	else
		hand_out(meta, file, LOADED, record);
}

SEC("iter/task_file")
int list_open_files(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct open_file_record record = { .fd = ctx->fd };
	if (task && file)
		list(ctx->meta, task, file, &record);
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
		list(ctx->meta, task, file, &record);
	return 0;
}
