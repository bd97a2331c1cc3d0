package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Of Linux; Go's syscall does not export them.
const (
	noExec       = 0x8   // ST_NOEXEC of statfs
	atFdcwd      = -0x64 // AT_FDCWD
	atEaccess    = 0x200 // AT_EACCESS: as the account that runs this
	readAndEnter = 4 | 1 // R_OK, X_OK
)

// places are the folders that trees are in, the best first.
func places() ([]string, error) {
	if named := os.Getenv(folderVariable); named != "" {
		absolute, err := filepath.Abs(named)
		return []string{absolute}, err
	}
	found := []string{"/var/cache/gantrymq"} // a root's tree serves every account
	if cache, err := os.UserCacheDir(); err == nil && os.Geteuid() != 0 {
		found = append(found, filepath.Join(cache, "gantrymq"))
	}
	own := "gantrymq-" + strconv.Itoa(os.Geteuid())
	for _, temporary := range []string{"/var/tmp", os.TempDir()} {
		found = append(found, filepath.Join(temporary, own))
	}
	return found, nil
}

// isOurs tells whether a folder is there, this account can use it, and only root or this account can have written what
// is in it.
func isOurs(path string) bool {
	return refusal(path) == nil
}

func refusal(path string) error {
	found, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner := found.Sys().(*syscall.Stat_t).Uid
	switch {
	case !found.IsDir():
		return fmt.Errorf("%s is no folder", path)
	case owner != 0 && int(owner) != os.Geteuid():
		return fmt.Errorf("%s belongs to another account (user id %d)", path, owner)
	case found.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written by other accounts", path)
	}
	if err := syscall.Faccessat(atFdcwd, path, readAndEnter, atEaccess); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// canHold makes the folder and says why a tree can't be unpacked and run there.
func canHold(folder string) error {
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o755
	}
	if err := os.MkdirAll(folder, mode); err != nil {
		return err
	}
	if err := refusal(folder); err != nil {
		return err
	}
	var about syscall.Statfs_t
	if err := syscall.Statfs(folder, &about); err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	if about.Flags&noExec != 0 {
		return fmt.Errorf("%s is on a file system that runs no programs (mounted noexec)", folder)
	}
	probe, err := os.CreateTemp(folder, "probe-")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}
