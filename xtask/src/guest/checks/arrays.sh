# What the checks look at: a RAID 5 with XFS, a RAID 10 with ext4, a logical volume with XFS, a disk
# of scsi_debug. FIVE, TEN and VOLUMES name the disks.
set -eu

create() {
    name=$1 level=$2
    shift 2
    mdadm --create "/dev/md/$name" --homehost=guest --name="$name" --run --assume-clean \
        --level="$level" --raid-devices=4 --chunk=64 --bitmap=none "$@"
}
# shellcheck disable=SC2086 # lists of disks
create five 5 $FIVE
# shellcheck disable=SC2086
create ten 10 $TEN
mdadm --detail --scan >>/etc/mdadm/mdadm.conf
vgcreate -q vg "$VOLUMES"
lvcreate -q -y -n lv -L 320M vg
lvcreate -q -y -n two -L 96M vg

mkfs.xfs -q -f /dev/md/five
mkfs.ext4 -q -F /dev/md/ten
mkfs.xfs -q -f /dev/vg/lv
mkfs.ext4 -q -F /dev/vg/two
mkdir -p /srv/five /srv/ten /srv/lv /srv/two
# The arrays may take longer to come up than systemd waits by default, where the host is busy.
while read -r device point type; do
    echo "$device $point $type nofail,x-systemd.device-timeout=600 0 0"
done >>/etc/fstab <<END
/dev/md/five /srv/five xfs
/dev/md/ten /srv/ten ext4
/dev/vg/lv /srv/lv xfs
/dev/vg/two /srv/two ext4
END
systemctl daemon-reload
mount -a
for name in five ten lv two; do
    mountpoint -q "/srv/$name"
done

echo scsi_debug >/etc/modules-load.d/scsi_debug.conf
echo 'options scsi_debug dev_size_mb=64 max_queue=32' >/etc/modprobe.d/scsi_debug.conf
modprobe scsi_debug
udevadm settle
