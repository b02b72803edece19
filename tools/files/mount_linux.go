package files

import "golang.org/x/sys/unix"

// isMount reports whether something is mounted on the file itself, as containers do with single files: its name cannot be given to
// another file (rename(2): EBUSY). Kernels before 5.8 do not say it; transaction.replace then finds out by trying.
func isMount(path string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &st)
	return err == nil && st.Attributes&st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0
}
