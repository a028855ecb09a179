/* All of foreread's BPF programs. They only read. */
#include "kernel.h"
#include "records.h"
#include "open_files.h"

char LICENSE[] SEC("license") = "GPL";
