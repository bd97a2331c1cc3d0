// The launcher of the single file: it unpacks what the file carries, once, and becomes the interpreter in it.
//
//	gantry …      runs `python3 -P -m appliance …` of the unpacked tree
//
// It is no parent of anything: it replaces itself, so that signals and exit codes are those of the command.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const folderVariable = "GANTRY_UNPACK" // the folder to unpack into; empty: the first of `places` that can be used

// What would make our interpreter take another one's modules or options.
const foreignPrefix = "PYTHON"

// Packages of the account are no part of this program, and the tree stays as it was unpacked.
var ownVariables = []string{"PYTHONNOUSERSITE=1", "PYTHONDONTWRITEBYTECODE=1"}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gantry:", err)
		os.Exit(1)
	}
}

func run() error {
	payload, err := openPayload("/proc/self/exe")
	if err != nil {
		return err
	}
	tree, err := findOrUnpack(payload)
	if err != nil {
		return err
	}
	payload.close()
	if err := hold(tree); err != nil {
		return err
	}
	python := filepath.Join(tree, "bin", "python3")
	arguments := append([]string{python, "-P", "-m", "appliance"}, os.Args[1:]...)
	return fmt.Errorf("%s can't be started: %w", python, syscall.Exec(python, arguments, environment()))
}

func environment() []string {
	kept := append([]string(nil), ownVariables...)
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, foreignPrefix) && !strings.HasPrefix(pair, folderVariable+"=") {
			kept = append(kept, pair)
		}
	}
	return kept
}

func findOrUnpack(payload *payload) (string, error) {
	// What root unpacks, every account runs, whatever root's own mask is. The command gets that mask back.
	defer syscall.Umask(syscall.Umask(0o022))
	folders, err := places()
	if err != nil {
		return "", err
	}
	for _, folder := range folders {
		if tree := filepath.Join(folder, payload.key()); isOurs(folder) && isOurs(tree) {
			return tree, nil
		}
	}
	var refusals []error
	for _, folder := range folders {
		if err := canHold(folder); err != nil {
			refusals = append(refusals, err)
			continue
		}
		tree, err := unpack(payload, folder)
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			refusals = append(refusals, err)
			continue
		}
		return tree, err
	}
	return "", fmt.Errorf("no folder to unpack into (name one with %s):\n%w", folderVariable, errors.Join(refusals...))
}
