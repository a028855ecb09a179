#!/usr/bin/perl
# reader FILE forward|backward [TIMES [PAUSE]]: reads a file in blocks of 16 KiB, from the disk each
# time, so often or, if that is 0, until it is ended; with a pause of 2 ms or so many after each.
use strict;

my ($path, $direction, $times, $pause) = @ARGV;
open my $file, '<', $path or die "$path: $!";
my ($size, $step) = (-s $file, 1 << 14);
for (my $round = 0; !$times || $round < $times; $round++) {
    # posix_fadvise(2) with POSIX_FADV_DONTNEED, on x86-64.
    syscall 221, fileno($file), 0, 0, 4;
    for (my $at = 0; $at < $size; $at += $step) {
        sysseek $file, $direction eq 'backward' ? $size - $step - $at : $at, 0;
        sysread $file, my $data, $step or die "$path: $!";
        select undef, undef, undef, ($pause || 2) / 1000;
    }
}
