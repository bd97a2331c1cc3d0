package main

const syscallSyncfs = 306 // the package syscall has no name for it
