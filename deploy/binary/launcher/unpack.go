package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
)

const (
	lockName   = "lock"
	unfinished = ".unfinished"       // the end of the name of a tree that is being unpacked
	keepUnused = 30 * 24 * time.Hour // then the tree of another version is removed
	memoryMax  = 512 << 20           // of the decoder
)

// unpack makes the tree beside and renames it: there is never half a tree under its name, whatever is killed. One
// process at a time does it; the others wait and find it.
func unpack(payload *payload, folder string) (string, error) {
	lock, err := os.OpenFile(filepath.Join(folder, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("%s: %w", lock.Name(), err)
	}
	tree := filepath.Join(folder, payload.key())
	if isOurs(tree) {
		return tree, nil
	}
	removeOld(folder)
	fmt.Fprintf(os.Stderr, "gantry: unpacking into %s, once\n", tree)
	making := tree + unfinished
	if err := write(payload, making); err != nil {
		os.RemoveAll(making)
		return "", fmt.Errorf("unpacking into %s: %w", making, err)
	}
	if err := os.Rename(making, tree); err != nil {
		return "", err
	}
	return tree, nil
}

func write(payload *payload, folder string) error {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	digest := sha256.New()
	source := io.TeeReader(payload.reader(), digest)
	unzipped, err := zstd.NewReader(source, zstd.WithDecoderMaxMemory(memoryMax), zstd.WithDecoderMaxWindow(memoryMax))
	if err != nil {
		return err
	}
	defer unzipped.Close()
	members := tar.NewReader(unzipped)
	for {
		member, err := members.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = writeMember(folder, member, members)
		}
		if err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, unzipped); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, source); err != nil {
		return err
	}
	if !bytes.Equal(digest.Sum(nil), payload.sha256) {
		return errors.New("this file is damaged: its content has another SHA-256")
	}
	return syncAll(folder)
}

func writeMember(folder string, member *tar.Header, content io.Reader) error {
	if !filepath.IsLocal(member.Name) {
		return fmt.Errorf("%q leaves the folder", member.Name)
	}
	path := filepath.Join(folder, member.Name)
	switch member.Typeflag {
	case tar.TypeDir:
		return os.MkdirAll(path, 0o755)
	case tar.TypeSymlink:
		if !filepath.IsLocal(filepath.Join(filepath.Dir(member.Name), member.Linkname)) {
			return fmt.Errorf("%q links out of the folder", member.Name)
		}
		return os.Symlink(member.Linkname, path)
	case tar.TypeReg:
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(member.Mode)&0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		return errors.Join(err, file.Close())
	}
	return fmt.Errorf("%q is of a kind that is not expected (%c)", member.Name, member.Typeflag)
}

// syncAll: the name of a tree must not outlive its content when the power fails.
func syncAll(folder string) error {
	opened, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer opened.Close()
	if _, _, code := syscall.Syscall(syscallSyncfs, opened.Fd(), 0, 0); code != 0 {
		return fmt.Errorf("syncfs %s: %w", folder, code)
	}
	return nil
}

// hold marks the tree as in use for as long as this process lives, whatever it becomes: the descriptor passes through
// exec. Workers do not have it and need not: they end with the process that has.
func hold(tree string) error {
	opened, err := syscall.Open(tree, syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", tree, err)
	}
	if err := syscall.Flock(opened, syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s is being removed: %w", tree, err)
	}
	now := time.Now()
	os.Chtimes(tree, now, now) // fails for a tree of root, which nobody else removes either
	return nil
}

// removeOld removes what killed processes left, and trees that no process holds and that none was started from for long.
func removeOld(folder string) {
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		about, err := entry.Info()
		if err != nil || !entry.IsDir() {
			continue
		}
		isOldTree := len(entry.Name()) == keyLength && time.Since(about.ModTime()) > keepUnused && !isHeld(path)
		if isOldTree || strings.HasSuffix(entry.Name(), unfinished) {
			os.RemoveAll(path)
		}
	}
}

func isHeld(tree string) bool {
	opened, err := os.Open(tree)
	if err != nil {
		return true
	}
	defer opened.Close()
	return syscall.Flock(int(opened.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
