// This part is loadstone stop: an end to all runs of a server, at once.

package cli

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server/api"
)

// StopAllCommand are those of loadstone stop.
type StopAllCommand struct {
	All bool `help:"Stop every run and matrix (required)."`
	Yes bool `short:"y" help:"Do not ask."`
}

// Run asks once, and stops everything.
func (f *StopAllCommand) Run(e *terminal.Env, do APICall) error {
	if !f.All {
		return engine.InvalidField("--all", "is not given",
			"loadstone stop --all stops every run; one is stopped on its page")
	}
	if !f.Yes {
		_, _ = fmt.Fprint(e.Stderr, "Stop all runs and matrices of this server and of those on its control store? [y/N] ")
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // no answer is no
		if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
			return &engine.Error{Code: engine.CodeInvalid, Message: "Nothing was stopped.", Hint: "answer y, or give --yes"}
		}
	}
	var r api.StopReport
	if err := do(e.Ctx, http.MethodPost, "/api/stop-all", struct{}{}, &r); err != nil {
		return err
	}
	return printStopReport(e, r)
}

// printStopReport writes what came of it; what goes on is an error.
func printStopReport(e *terminal.Env, r api.StopReport) error {
	failed := 0
	for _, group := range []struct {
		where string
		runs  []api.StoppedRun
	}{{"here", r.Here}, {"elsewhere", r.Elsewhere}} {
		for _, s := range group.runs {
			state := string(s.Status)
			if s.Error != "" {
				failed++
				state = "could not be stopped: " + s.Error
			}
			fmt.Fprintf(e.Stdout, "%s  %s  %s  %s\n", s.RunID, group.where, terminal.Shown(s.RunName), terminal.Shown(state))
		}
	}
	if len(r.Here)+len(r.Elsewhere) == 0 {
		fmt.Fprintln(e.Stdout, "No run was under way.")
	}
	if len(r.Matrices) > 0 {
		fmt.Fprintf(e.Stdout, "%d matrices start no further run.\n", len(r.Matrices))
	}
	switch {
	case !r.StoreAnswered:
		return &terminal.ExitError{Code: terminal.ExitFailed, Err: &engine.Error{Code: engine.CodeUnavailable,
			Message: "The control store does not answer: runs of other servers were not reached.",
			Hint:    "ask each of them with --server, or end their processes"}}
	case failed > 0:
		return &terminal.ExitError{Code: terminal.ExitFailed, Err: &engine.Error{Code: engine.CodeUnavailable,
			Message: fmt.Sprintf("%d runs could not be stopped.", failed), Hint: "try again, or end their servers"}}
	}
	return nil
}
