package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

var output sync.Mutex

// say prints one fact: a word, then fields between tabs. The Python side reads them.
func say(word string, fields ...any) {
	line := []string{word}
	for _, field := range fields {
		line = append(line, fmt.Sprint(field))
	}
	output.Lock()
	defer output.Unlock()
	fmt.Println(strings.Join(line, "\t"))
}

// sayJSON prints a word and one field: the facts as JSON.
func sayJSON(word string, facts any) error {
	text, err := json.Marshal(facts)
	if err == nil {
		say(word, string(text))
	}
	return err
}

// waitForEnd returns when the Python side closes our standard input.
func waitForEnd() {
	_, _ = io.Copy(io.Discard, os.Stdin) // an input that can't be read has ended, too
}
