/* Reads a file with one fault each, or with --fixed without it: fault PATTERN FILE
 * [--play NANOSECONDS] [--fixed]. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char buffer[1 << 20];
static long total;

static void take(ssize_t got)
{
	total += got;
}

/* Nanoseconds for which each KiB is played. */
static long play_ns;

/* Without using the processor, which the virtual disk needs. */
static void play(size_t bytes)
{
	struct timespec time = {0, (long)bytes / 1024 * play_ns};
	if (play_ns)
		nanosleep(&time, NULL);
}

static void in_order(int fd, off_t size, size_t step)
{
	for (off_t at = 0; at + (off_t)step <= size; at += step) {
		take(pread(fd, buffer, step, at)); /* line of slow-window */
		play(step);
	}
}

static void backward(int fd, off_t size)
{
	for (off_t at = size - 3809; at >= 0; at -= 3809)
		take(pread(fd, buffer, 3809, at)); /* line of backward */
}

/* Every fourth 64 KiB; fixed, eight of them are asked for ahead. */
static void stride(int fd, off_t size, int fixed)
{
	off_t asked = 0;
	for (off_t at = 0; at + (1 << 18) <= size; at += 1 << 18) {
		for (; fixed && asked <= at + (8 << 18) && asked < size; asked += 1 << 18)
			posix_fadvise(fd, asked, 64 << 10, POSIX_FADV_WILLNEED);
		take(pread(fd, buffer, 64 << 10, at)); /* line of stride */
	}
}

/* As fast as the disk can; fixed, hardly anything. */
static void whole(int fd, off_t size)
{
	for (off_t at = 0; at < size; at += 16 << 10)
		take(pread(fd, buffer, 16 << 10, at)); /* line of saturated */
}

#define STREAMS 64

/* Streams that take turns; the twin has more memory. */
static int streams(const char *name, off_t size)
{
	int files[STREAMS];
	for (int which = 0; which < STREAMS; which++)
		if ((files[which] = open(name, O_RDONLY)) < 0)
			return 1;
	for (off_t at = 0; at < size / STREAMS; at += 16 << 10)
		for (int which = 0; which < STREAMS; which++)
			take(pread(files[which], buffer, 16 << 10, which * size / STREAMS + at)); /* line of thrash */
	return 0;
}

static void again(int fd, off_t size, int fixed)
{
	for (int pass = 0; pass < 3; pass++) {
		for (off_t at = 0; at < size; at += 64 << 10)
			take(pread(fd, buffer, 64 << 10, at));
		if (!fixed)
			posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* line of self-eviction */
	}
}

/* Reads around the page cache; fixed, 1 MiB at once. */
static int direct(const char *name, off_t size, int fixed)
{
	static char aligned[1 << 20] __attribute__((aligned(4096)));
	size_t step = fixed ? sizeof(aligned) : 16 << 10;
	int fd = open(name, O_RDONLY | O_DIRECT);
	if (fd < 0)
		return 1;
	for (off_t at = 0; at + (off_t)step <= size; at += step)
		take(pread(fd, aligned, step, at)); /* line of direct-depth-1 */
	close(fd);
	return 0;
}

/* Places without order, the same each time. */
static off_t scattered(unsigned long index, off_t size)
{
	unsigned long word = (index + 1) * 0x9e3779b97f4a7c15UL;
	word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9UL;
	return (off_t)((word ^ (word >> 31)) % (unsigned long)size) & ~4095L;
}

/* Short runs at places without order; fixed, each run is asked for at once. */
static void ramp(int fd, off_t size, int fixed)
{
	for (unsigned long run = 0; run < 100; run++) {
		off_t start = scattered(run, size - (1 << 17));
		if (fixed)
			readahead(fd, start, 20 * 4096);
		for (off_t page = 0; page < 20; page++)
			take(pread(fd, buffer, 4096, start + page * 4096)); /* line of ramp */
	}
}

/* One page of each 256 KiB without order, so that none comes in with another; fixed, with MADV_RANDOM. */
static void mapped_random(char *map, off_t size, int fixed)
{
	if (fixed)
		madvise(map, size, MADV_RANDOM);
	unsigned long pieces = size >> 18;
	for (unsigned long index = 0; index < 200 && index < pieces; index++) {
		off_t piece = (off_t)(index * 157 % pieces) << 18;
		take(map[piece + scattered(index, 1 << 17)]); /* line of mapped-random */
	}
}

/* A hot half of the file before, between and after scans of another file, FILE.scan. */
static int beside_scan(int fd, off_t size, const char *name, int fixed)
{
	char other[4096];
	snprintf(other, sizeof(other), "%s.scan", name);
	int scan = open(other, O_RDONLY);
	if (scan < 0)
		return 1;
	for (int pass = 0; pass < 3; pass++) {
		for (off_t at = 0; at < size; at += 64 << 10)
			take(pread(fd, buffer, 64 << 10, at));
		for (off_t at = pass * size; at < (pass + 1) * size; at += 64 << 10) {
			take(pread(scan, buffer, 64 << 10, at)); /* line of polluting-scan */
			if (fixed)
				posix_fadvise(scan, 0, at, POSIX_FADV_DONTNEED);
		}
	}
	close(scan);
	return 0;
}

/* All of it through stdio; fixed, around the page cache. */
static int late(const char *name, off_t size, int fixed)
{
	if (fixed)
		return direct(name, size, fixed);
	FILE *file = fopen(name, "r");
	if (!file)
		return 1;
	while (fread(buffer, 100, 1, file)) /* line of late-window */
		total++;
	fclose(file);
	return 0;
}

#define READERS 2

/* Part of a file, which a thread reads. */
struct part {
	int fd;
	off_t start;
	off_t end;
};

static void *read_part(void *argument)
{
	struct part *part = argument;
	char own[16 << 10];
	for (off_t at = part->start; at < part->end; at += sizeof(own))
		if (pread(part->fd, own, sizeof(own), at) < 0) /* line of shared-open-file */
			break;
	return NULL;
}

/* Threads that read through one open file; fixed, each through its own. */
static int shared(int fd, const char *name, off_t size, int fixed)
{
	pthread_t threads[READERS];
	struct part parts[READERS];
	for (int which = 0; which < READERS; which++) {
		off_t start = which * size / READERS;
		int own = fixed ? open(name, O_RDONLY) : fd;
		parts[which] = (struct part){own, start, start + size / READERS / 2};
		if (pthread_create(&threads[which], NULL, read_part, &parts[which]))
			return 1;
	}
	for (int which = 0; which < READERS; which++)
		pthread_join(threads[which], NULL);
	return 0;
}

/* Asks for the start of the file at once, and reads there without order; fixed, piece by piece. */
static void advised(int fd, off_t start, int fixed)
{
	off_t piece = fixed ? 128 << 10 : start;
	for (off_t at = 0; at < start; at += piece)
		posix_fadvise(fd, at, piece, POSIX_FADV_WILLNEED); /* line of cut-advice */
	for (unsigned long index = 0; index < 600; index++)
		take(pread(fd, buffer, 4096, scattered(index, start)));
}

/* Writes a mapping out, whose pages write(2) waits for. */
static int written(const char *map, off_t size, int fixed)
{
	int out = memfd_create("out", 0);
	if (out < 0 || (!fixed && madvise((void *)map, size, MADV_RANDOM)))
		return 1;
	for (off_t at = 0; at < size / 2; at += 64 << 10)
		take(write(out, map + at, 64 << 10)); /* line of written-mapping */
	return 0;
}

/* From the end; fixed, each 512 KiB is asked for before it. */
static void mapped_backward(char *map, off_t size, int fixed)
{
	const off_t piece = 512 << 10;
	for (off_t at = size - 4096; at >= 0; at -= 4096) {
		if (fixed && (at + 4096) % piece == 0)
			madvise(map + at + 4096 - piece, piece, MADV_WILLNEED);
		take(map[at]); /* line of mapped-backward */
	}
}

/* Eight pages at places without order; fixed, each piece is asked for first. */
static void mapped_pieces(char *map, off_t size, int fixed)
{
	size_t piece = 8 * 4096;
	if (fixed)
		madvise(map, size, MADV_RANDOM);
	for (unsigned long index = 0; index < 200; index++) {
		char *start = map + scattered(index, size - piece);
		if (fixed)
			madvise(start, piece, MADV_WILLNEED);
		for (size_t page = 0; page < piece; page += 4096)
			take(start[page]); /* line of mapped-pieces */
	}
}

/* Follows places that each piece of data leads to; fixed, once. */
static void chase(int fd, off_t size, int fixed)
{
	unsigned long at = 1;
	for (int step = 0; step < (fixed ? 1 : 300); step++) {
		take(pread(fd, buffer, 4096, scattered(at, size))); /* line of pointer-chase */
		at += buffer[0] + 1;
	}
}

/* Reads one piece: what each of the short readers does. */
static void short_reader(int fd, off_t size, unsigned long index)
{
	take(pread(fd, buffer, 4096, scattered(index, size))); /* line of short-readers */
}

/* A thousand processes, one after the other; fixed, only one. */
static int short_readers(char *program, char *name, int fixed)
{
	for (int index = 0; index < (fixed ? 1 : 1000); index++) {
		char number[16];
		snprintf(number, sizeof(number), "%d", index);
		pid_t child = fork();
		if (child < 0)
			return 1;
		if (child == 0) {
			execl(program, program, "short-reader", name, number, NULL);
			_exit(1);
		}
		waitpid(child, NULL, 0);
	}
	return 0;
}

/* Many small files in the directory NAME.many in the order of their names, which is not that of the
 * disk; fixed, the same data from one file. */
static int small_files(int fd, const char *name, int fixed)
{
	char file[4096];
	for (unsigned long index = 0; index < 400; index++) {
		if (fixed) {
			take(pread(fd, buffer, 16 << 10, index << 14));
			continue;
		}
		snprintf(file, sizeof(file), "%s.many/%lu", name, index * 7919 % 400);
		int one = open(file, O_RDONLY);
		if (one < 0)
			return 1;
		take(read(one, buffer, 16 << 10)); /* line of small-files */
		close(one);
	}
	return 0;
}

/* SEQUENTIAL for an open file that is not read; fixed, for the one that is. */
static int advised_elsewhere(int fd, const char *name, off_t size, int fixed)
{
	int other = open(name, O_RDONLY);
	if (other < 0)
		return 1;
	posix_fadvise(fixed ? fd : other, 0, 0, POSIX_FADV_SEQUENTIAL); /* line of other-file */
	in_order(fd, size, 16 << 10);
	close(other);
	return 0;
}

static void mapped(const char *map, off_t size)
{
	for (off_t at = 0; at < size; at += 4096)
		take(map[at]); /* line of mapped-sequential */
}

int main(int count, char **words)
{
	struct stat status;
	if (count < 3)
		return 2;
	int fixed = !strcmp(words[count - 1], "--fixed");
	if (count > 4 && !strcmp(words[3], "--play")) {
		play_ns = atol(words[4]);
		prctl(PR_SET_TIMERSLACK, 1);
	}
	int fd = open(words[2], O_RDONLY);
	if (fd < 0 || fstat(fd, &status))
		return 1;
	off_t size = status.st_size;
	if (!strcmp(words[1], "needless-random")) {
		if (!fixed)
			posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); /* line of needless-random */
		in_order(fd, size / 2, 4096);
	} else if (!strcmp(words[1], "backward")) {
		fixed ? in_order(fd, size / 32, 64 << 10) : backward(fd, size / 32);
	} else if (!strcmp(words[1], "stride")) {
		stride(fd, size, fixed);
	} else if (!strcmp(words[1], "thrash")) {
		if (streams(words[2], size))
			return 1;
	} else if (!strcmp(words[1], "saturated")) {
		whole(fd, fixed ? 1 << 16 : size);
	} else if (!strcmp(words[1], "short-readers")) {
		if (short_readers(words[0], words[2], fixed))
			return 1;
	} else if (!strcmp(words[1], "short-reader")) {
		short_reader(fd, size, strtoul(words[3], NULL, 10));
	} else if (!strcmp(words[1], "self-eviction")) {
		again(fd, size / 2, fixed);
	} else if (!strcmp(words[1], "polluting-scan")) {
		if (beside_scan(fd, size / 4, words[2], fixed))
			return 1;
	} else if (!strcmp(words[1], "direct-depth-1")) {
		if (direct(words[2], size / 4, fixed))
			return 1;
	} else if (!strcmp(words[1], "late-window")) {
		if (late(words[2], size, fixed))
			return 1;
	} else if (!strcmp(words[1], "shared-open-file")) {
		if (shared(fd, words[2], size, fixed))
			return 1;
	} else if (!strcmp(words[1], "cut-advice")) {
		advised(fd, size / 8, fixed);
	} else if (!strcmp(words[1], "void-advice")) {
		int advice = fixed ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_SEQUENTIAL | POSIX_FADV_WILLNEED;
		posix_fadvise(fd, 0, 0, advice); /* line of void-advice */
		in_order(fd, size, 16 << 10);
	} else if (!strcmp(words[1], "other-file")) {
		if (advised_elsewhere(fd, words[2], size, fixed))
			return 1;
	} else if (!strcmp(words[1], "small-files")) {
		if (small_files(fd, words[2], fixed))
			return 1;
	} else if (!strcmp(words[1], "pointer-chase")) {
		chase(fd, size, fixed);
	} else if (!strcmp(words[1], "slow-window")) {
		in_order(fd, size, 16 << 10); /* the twin has a larger window */
	} else if (!strcmp(words[1], "ramp")) {
		ramp(fd, size, fixed);
	} else if (!strcmp(words[1], "random-depth-1")) {
		for (unsigned long index = 0; index < (fixed ? 1 : 300); index++)
			take(pread(fd, buffer, 4096, scattered(index, size))); /* line of random-depth-1 */
	} else {
		char *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED)
			return 1;
		if (!strcmp(words[1], "mapped-random")) {
			mapped_random(map, size, fixed);
		} else if (!strcmp(words[1], "mapped-backward")) {
			mapped_backward(map, size / 32, fixed);
		} else if (!strcmp(words[1], "mapped-pieces")) {
			mapped_pieces(map, size, fixed);
		} else if (!strcmp(words[1], "written-mapping")) {
			if (written(map, size, fixed))
				return 1;
		} else {
			if (!fixed)
				madvise(map, size, MADV_RANDOM);
			mapped(map, size / 2);
		}
	}
	printf("%ld\n", total);
	return 0;
}
