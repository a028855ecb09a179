#!/usr/bin/perl
# no-bpf COMMAND…: runs a command that may not call bpf(2), on x86-64: it fails with EPERM.
use strict;

# A program of seccomp(2): loads the number of the call, and compares it with that of bpf.
my $code = pack 'SCCL' x 4,
    0x20, 0, 0, 0,
    0x15, 0, 1, 321,
    0x06, 0, 0, 0x00050001,
    0x06, 0, 0, 0x7fff0000;
my $program = pack 'S x6 P', 4, $code;
syscall(317, 1, 0, $program) == 0 or die "seccomp: $!";
exec @ARGV or die "$ARGV[0]: $!";
