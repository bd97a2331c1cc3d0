// Programs of the interop tests, written with the official Go client: the first argument says which, the others are its
// own. What they find is told line by line, see lines.go.
package main

import (
	"fmt"
	"os"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

var programs = map[string]func(arguments []string) error{
	"burst":  burst,
	"flows":  flows,
	"steady": steady,
}

func main() {
	rlog.SetLogLevel("error")
	// After an asynchronous send that timed out the client works on with the answer it has not got: that ends the process.
	primitive.PanicHandler = func(reason any) { fmt.Fprintln(os.Stderr, "the client's own:", reason) }
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "which program? The table in main.go names them.")
		os.Exit(2)
	}
	if err := programs[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
