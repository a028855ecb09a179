# The steps of `xtask packages systemd`. Each is a function that runs as root in the guest with
# `set -eu`, and prints what it found on one line.

metrics=/var/lib/prometheus/node-exporter
auto=foreread-auto.service

settings() { grep -H . /sys/class/bdi/*/read_ahead_kb /sys/block/*/queue/scheduler; }
now_ms() { awk '{ print $1 * 1000 }' /proc/uptime; }
property() { systemctl show --property "$1" --value "${2:-$auto}"; }
fail() {
    echo "$*" >&2
    exit 1
}

# same_settings FILE
same_settings() {
    settings | diff "$1" - >/var/tmp/difference ||
        fail "settings differ from those in $1: $(tr '\n' ' ' </var/tmp/difference)"
}

# wait_until SECONDS COMMAND…
wait_until() {
    left=$1
    shift
    until "$@"; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || fail "not within the time: $*"
        sleep 1
    done
}

has_restarted_since() {
    [ "$(property NRestarts)" -gt "$1" ] && systemctl --quiet is-active $auto
}

window() { cat "/sys/class/bdi/$(mountpoint --fs-devno /srv/data)/read_ahead_kb"; }
has_window() { [ "$(window)" = "$1" ]; }
has_swappiness() { [ "$(cat /proc/sys/vm/swappiness)" = "$1" ]; }

has_acted() {
    journalctl --boot --quiet --output cat --unit $auto | grep -q file9
}

start_readers() {
    for file in 1 2 3 4 5 6 7 8; do
        systemd-run --quiet --collect --unit "reader$file" reader "/srv/data/file$file" forward 0 15
    done
    systemd-run --quiet --collect --unit reader9 reader /srv/data/file9 backward 0 15
}

install_package() {
    settings >/var/tmp/settings
    before=$(now_ms)
    dpkg --install /var/tmp/first.deb >/var/tmp/installed 2>&1
    installed=$(now_ms)
    foreread demo >/tmp/demo
    verdict=$(now_ms)
    grep -q Measure /tmp/demo
    for unit in $auto foreread-metrics.timer; do
        [ "$(systemctl is-enabled $unit)" = disabled ] || fail "$unit is not disabled"
        ! systemctl --quiet is-active $unit || fail "$unit is active"
    done
    same_settings /var/tmp/settings
    echo "$before $installed $verdict" |
        awk '{ printf "%.1f s, first verdict %.1f s later\n", ($2 - $1) / 1e3, ($3 - $2) / 1e3 }'
}

start_auto() {
    echo 'FOREREAD_AUTO=/srv/data' >/etc/default/foreread-auto
    systemctl enable --quiet --now $auto
    systemctl --quiet is-active $auto
    echo "active; $(foreread auto status | head -n 1)"
}

adapt() {
    start_readers
    wait_until 180 has_acted
    systemctl stop 'reader*'
    journalctl --boot --quiet --output cat --unit $auto | grep -m 1 file9
}

keep_sandbox() {
    pid=$(property MainPID)
    status=/proc/$pid/status
    grep -q '^NoNewPrivs:.*1' "$status" || fail "may gain privileges"
    grep -q '^Seccomp:.*2' "$status" || fail "has no filter of system calls"
    # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_PERFMON, CAP_BPF,
    # CAP_CHECKPOINT_RESTORE
    grep -q '^CapBnd:.*000001c000080006' "$status" || fail "$(grep CapBnd "$status")"
    [ "$(readlink "/proc/$pid/ns/net")" != "$(readlink /proc/self/ns/net)" ] || fail "has a network"
    for path in /usr /etc /root /srv/data; do
        ! nsenter --target "$pid" --mount touch "$path/probe" 2>/dev/null || fail "writes to $path"
    done
    nsenter --target "$pid" --mount touch /var/lib/foreread/probe
    rm /var/lib/foreread/probe
    ! journalctl --boot --quiet --output cat --unit $auto | grep -i 'denied\|not permitted'
    echo "six capabilities, a filter of system calls, no network, only its own directory writable"
}

keep_watchdog() {
    restarts=$(property NRestarts)
    sleep 45
    [ "$(property NRestarts)" = "$restarts" ] || fail "was restarted"
    before=$(property MainPID)
    kill -STOP "$before"
    wait_until 300 has_restarted_since "$restarts"
    [ "$(property MainPID)" != "$before" ]
    echo "alive after 45 s; stopped by SIGSTOP, it was replaced"
}

survive_kill() {
    restarts=$(property NRestarts)
    before=$(property MainPID)
    start_readers
    kill -KILL "$before"
    wait_until 300 has_restarted_since "$restarts"
    systemctl stop 'reader*'
    [ "$(property MainPID)" != "$before" ]
    same_settings /var/tmp/settings
    echo "active again; settings as before"
}

survive_reboot() {
    systemctl --quiet is-active $auto || wait_until 120 systemctl --quiet is-active $auto
    same_settings /var/tmp/settings
    echo "active after the boot"
}

upgrade_package() {
    before=$(property MainPID)
    dpkg --force-confold --install /var/tmp/next.deb >/var/tmp/upgraded 2>&1
    systemctl --quiet is-active $auto || wait_until 60 systemctl --quiet is-active $auto
    [ "$(property MainPID)" != "$before" ]
    grep -q /srv/data /etc/default/foreread-auto
    echo "the service runs the new program; its configuration was kept"
}

stop_auto() {
    start_readers
    wait_until 180 has_acted
    systemctl stop $auto
    [ "$(property ActiveState)/$(property Result)" = inactive/success ] || fail "$(property Result)"
    foreread watch /srv/data --once --json --interval 3s >/var/tmp/watched
    systemctl stop 'reader*'
    same_settings /var/tmp/settings
    tr '{' '\n' </var/tmp/watched | grep '"path":"/srv/data/file' |
        sed 's/.*"limit_kib":\([^,]*\),"bdi_kib":\([^,]*\),.*/\1 \2/' >/var/tmp/windows
    awk '$1 != $2 { print "a window of", $1, "KiB, its device has", $2, "KiB"; exit 1 }
        END { if (NR == 0) { print "no reader was seen"; exit 1 } }' /var/tmp/windows >&2
    echo "$(wc -l </var/tmp/windows) open files have the window of their device"
    ! pgrep --exact foreread || fail "a process is left"
}

run_metrics() {
    mkdir -p $metrics
    systemctl enable --quiet --now foreread-metrics.timer
    systemctl start foreread-metrics.service
    systemctl list-timers --no-pager | grep -q foreread-metrics.timer
    echo "$(grep -c '^foreread_' $metrics/foreread.prom) series"
}

remove_package() {
    foreread apply read_ahead=256K --on /srv/data
    foreread persist read_ahead=512K --on /srv/data
    settings >/var/tmp/settings-set
    systemctl start $auto
    dpkg --remove foreread >/var/tmp/removed 2>&1
    same_settings /var/tmp/settings-set
    grep -q 'rollback all' /var/tmp/removed || fail "does not say how to undo: $(cat /var/tmp/removed)"
    ls /etc/udev/rules.d/99-foreread-* >/dev/null
    systemctl start foreread-verify.service || fail "the unit that verifies fails"
    test -s /var/lib/foreread/runs.sqlite
    ! pgrep --exact foreread || fail "a process is left"
    dpkg --install /var/tmp/next.deb >/var/tmp/installed 2>&1
    foreread rollback all
    same_settings /var/tmp/settings
    [ -z "$(ls /etc/udev/rules.d/99-foreread-* 2>/dev/null)" ]
    echo "settings and record stayed; installed again, rollback restored the first settings"
}

# Its profile throughput-performance sets 4096 KiB and a swappiness of 10. Each call of tuned-adm is
# slow when emulated, so the first profile is chosen before the daemon starts.
obey_tuned() {
    echo throughput-performance >/etc/tuned/active_profile
    echo manual >/etc/tuned/profile_mode
    systemctl start tuned
    wait_until 300 has_window 4096
    tuned-adm profile foreread-disks
    foreread apply read_ahead=640K --on /srv/data
    systemctl stop tuned
    sysctl --quiet vm.swappiness=60
    systemctl start tuned
    wait_until 300 has_swappiness 10
    sleep 5
    has_window 640 || fail "after TuneD started, the window is $(window)"
    foreread persist --with tuned read_ahead=896K --on /srv/data
    has_window 896 || fail "with a profile for it, the window is $(window)"
    foreread rollback all
    [ "$(cat /etc/tuned/active_profile)" = foreread-disks ] || fail "$(cat /etc/tuned/active_profile)"
    systemctl stop tuned
    same_settings /var/tmp/settings
    echo "640 KiB stayed under foreread-disks; a child of it set 896 KiB, and was undone"
}

seed_cloud_init() {
    seed=/var/lib/cloud/seed/nocloud
    mkdir -p $seed
    echo 'instance-id: foreread' >$seed/meta-data
    foreread persist read_ahead=384K vm.dirty_background_ratio=6 --on /srv/data \
        --emit cloud-init >$seed/user-data
    rm /etc/cloud/cloud-init.disabled
    cloud-init schema --config-file $seed/user-data
}

# Modules of cloud-init that want a network fail here, and with the first of them its status is an
# error, before it has run the commands. So it is awaited by the file that it makes at its end.
set_by_cloud_init() {
    wait_until 600 test -e /var/lib/cloud/instance/boot-finished
    has_window 384 || fail "the window is $(window): $(tail /var/log/cloud-init-output.log)"
    [ "$(cat /proc/sys/vm/dirty_background_ratio)" = 6 ]
    foreread doctor --json /srv/data | tr -d ' \n' | grep -q '"origin":{[^}]*"kind":"foreread"' ||
        fail "$(foreread doctor /srv/data)"
    rm /etc/udev/rules.d/99-foreread-* /etc/sysctl.d/99-foreread.conf
    foreread verify
    echo "384 KiB by a udev rule, vm.dirty_background_ratio by sysctl.d; doctor names both"
}
