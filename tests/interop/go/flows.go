package main

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// facts is what a flow tells when all is as it should be; when not, it panics.
type facts map[string]any

// Those that wait long begin first.
var flowTable = []struct {
	name string
	run  func() facts
}{
	{"dead-letters", deadLetters},
	{"transactions", transactions},
	{"requests", requests},
	{"trace", trace},
	{"ordered", ordered},
	{"sends", sends},
	{"rotation", rotation},
	{"broadcast", broadcast},
	{"filters", filters},
	{"namespace", namespace},
	{"pull", pull},
	{"poll", poll},
	{"admin", administration},
}

const flowsAtOnce = 6

// flows runs every message kind and flow that the client has, several at a time. Each tells a line "FLOW" with JSON: flow,
// ok, ms, and what it found or why it failed. Arguments: those of readSetup, then the flows wanted (none: every one).
func flows(arguments []string) error {
	if err := readSetup(arguments); err != nil {
		return err
	}
	var left sync.WaitGroup
	places := make(chan struct{}, flowsAtOnce)
	wanted := strings.Join(arguments[setupArguments:], " ")
	for _, flow := range flowTable {
		flow := flow
		if wanted != "" && !strings.Contains(" "+wanted+" ", " "+flow.name+" ") {
			continue
		}
		places <- struct{}{}
		left.Add(1)
		go func() {
			defer left.Done()
			tellFlow(flow.name, flow.run)
			<-places
		}()
	}
	left.Wait()
	say("DONE")
	return nil
}

func tellFlow(name string, run func() facts) {
	began := time.Now()
	told := facts{"ok": false}
	defer func() {
		if failure := recover(); failure != nil {
			told["failure"] = fmt.Sprintf("%v at %s", failure, debug.Stack())
		}
		told["flow"] = name
		told["ms"] = time.Since(began).Milliseconds()
		if err := sayJSON("FLOW", told); err != nil {
			say("FAILED", name, err)
		}
	}()
	for fact, value := range run() {
		told[fact] = value
	}
	told["ok"] = true
}
