// This part is what operators do with nodes from the command line: look at them, have
// them end what they carry, and let them take work again. It all goes through the API of a
// server, which writes down who asked; nothing is said to a node past its servers.

package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/store"
)

// NodeAPI sends a request to a server and reads its answer into out.
type NodeAPI func(ctx context.Context, method, path string, in, out any) error

const nodesPath = "/api/v1/nodes"

// NodeList is every node as one server sees it.
type NodeList struct {
	Server string           `json:"server"`
	At     engine.Time      `json:"at"`
	Nodes  []nodes.NodeInfo `json:"nodes"`
}

func (ask NodeAPI) nodes(ctx context.Context) (l NodeList, err error) {
	err = ask(ctx, http.MethodGet, nodesPath, nil, &l)
	return l, err
}

// List writes every node that the server knows: as a table, or as the API answers it.
func (ask NodeAPI) List(ctx context.Context, w io.Writer, asJSON bool) error {
	l, err := ask.nodes(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return terminal.JSON(w, l)
	}
	return l.Table(w)
}

// Catalog writes the addresses that all servers of the control store dial.
func (ask NodeAPI) Catalog(ctx context.Context, out io.Writer) error {
	var list struct {
		Addresses []store.NodeAddress `json:"addresses"`
	}
	if err := ask(ctx, http.MethodGet, nodeAddressesPath, nil, &list); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ADDRESS\tADDED BY\tADDED AT")
	for _, a := range list.Addresses {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", nodeCell(a.Address), nodeCell(a.AddedBy), a.AddedAt.UTC().Format(time.RFC3339))
	}
	return w.Flush()
}

// noValue stands where there is nothing to show.
const noValue = "–"

// Table writes the nodes for a person, the reason of those that take no work below them.
func (l NodeList) Table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NODE\tADDRESS\tSTATE\tRUNS\tCONNECTIONS\tVERSION\tRTT\tCLOCK")
	for _, n := range l.Nodes {
		address := nodeCell(n.Address)
		if n.Local {
			address = "(in the server)"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", nodeCell(n.NodeID), address, n.State, formatRuns(n),
			formatConnections(n), nodeCell(n.Version), terminal.MillisOrNone(n.RTTMs), formatClockOffset(n))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, n := range l.Nodes {
		if !n.AcceptingWork && n.OutReason != "" {
			if _, err := fmt.Fprintf(out, "%s takes no new work: %s\n", nodeName(n),
				terminal.Shown(n.OutReason)); err != nil {
				return err
			}
		}
	}
	return nil
}

// nodeCell is a text of others as a table shows it, in one column and one line.
func nodeCell(s string) string {
	if s = strings.Join(strings.Fields(terminal.StripControls(s)), " "); s == "" {
		return noValue
	}
	return terminal.Shorten(s, terminal.MaxShown)
}

// nodeName is what an operator calls the node.
func nodeName(n nodes.NodeInfo) string {
	if n.NodeID == "" {
		return nodeCell(n.Address)
	}
	return nodeCell(n.NodeID)
}

// formatRuns counts those of which the node carries a part.
func formatRuns(n nodes.NodeInfo) int {
	of := map[string]bool{}
	for _, w := range n.Workers {
		of[w.RunID] = true
	}
	return len(of)
}

// formatConnections are those that are given, of how many.
func formatConnections(n nodes.NodeInfo) string {
	switch {
	case n.NodeID == "":
		return noValue
	case n.Capacity <= 0:
		return fmt.Sprintf("%d, no limit", n.Used)
	}
	return fmt.Sprintf("%d of %d", n.Used, n.Capacity)
}

// formatClockOffset is how far the node's is ahead of the server's, and how far that may be wrong.
func formatClockOffset(n nodes.NodeInfo) string {
	if n.ClockOffsetMs == nil {
		return noValue
	}
	text := strconv.FormatFloat(*n.ClockOffsetMs, 'f', 1, 64)
	if text == "-0.0" {
		text = "0.0" // what rounds to nothing is not behind
	}
	if !strings.HasPrefix(text, "-") {
		text = "+" + text
	}
	if n.ClockErrorMs != nil {
		text += " ±" + strconv.FormatFloat(*n.ClockErrorMs, 'f', 1, 64)
	}
	return text + " ms"
}

// find is the node of that name, or at that address where one node alone is there.
func (l NodeList) find(called string) (nodes.NodeInfo, error) {
	var at []nodes.NodeInfo
	for _, n := range l.Nodes {
		if n.NodeID == called && called != "" {
			return n, nil
		}
		if n.Address == called && called != "" && n.NodeID != "" {
			at = append(at, n)
		}
	}
	if len(at) == 1 {
		return at[0], nil
	}
	e := &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("The server knows no node %q.", called)}
	if len(at) > 1 {
		e.Message = fmt.Sprintf("%d nodes were at %s.", len(at), called)
	}
	var names []string
	for _, n := range l.Nodes {
		if n.NodeID != "" {
			names = append(names, nodeCell(n.NodeID))
		}
	}
	if len(names) == 0 {
		e.Hint = "it knows none yet: `loadstone node list` says why"
		return nodes.NodeInfo{}, e
	}
	e.Hint = "name one of " + strings.Join(names[:min(len(names), 8)], ", ")
	if len(names) > 8 {
		e.Hint += " …: `loadstone node list` shows all"
	}
	return nodes.NodeInfo{}, e
}

// setNodeState has the server do something with a node, and returns the node as it is then.
func (ask NodeAPI) setNodeState(ctx context.Context, called, verb string) (n nodes.NodeInfo, err error) {
	l, err := ask.nodes(ctx)
	if err != nil {
		return n, err
	}
	if n, err = l.find(called); err != nil {
		return n, err
	}
	err = ask(ctx, http.MethodPost, nodesPath+"/"+url.PathEscape(n.NodeID)+"/"+verb, map[string]any{}, &n)
	return n, err
}

// drainPollInterval is how often Drain looks whether the node has ended what it carried.
const drainPollInterval = 500 * time.Millisecond

// Drain has a node end what it carries and take nothing new, and waits so long for its end.
func (ask NodeAPI) Drain(e *terminal.Env, called string, wait time.Duration) error {
	n, err := ask.setNodeState(e.Ctx, called, "drain")
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(e.Stdout, "%s takes no new work; it carries %s. `loadstone node resume %s` takes it back.\n",
		nodeName(n), formatNodeLoad(n), nodeName(n)); err != nil {
		return err
	}
	l, err := ask.nodes(e.Ctx)
	if err != nil {
		return err
	}
	if !l.acceptsWork() {
		_, _ = fmt.Fprintln(e.Stderr, "No other node takes work now: runs cannot start until one does.")
	}
	if wait <= 0 {
		return nil
	}
	return ask.awaitIdle(e, n.NodeID, wait)
}

func (l NodeList) acceptsWork() bool {
	for _, n := range l.Nodes {
		if n.AcceptingWork {
			return true
		}
	}
	return false
}

// awaitIdle waits until the node carries nothing any more.
func (ask NodeAPI) awaitIdle(e *terminal.Env, id string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(e.Ctx, limit)
	defer cancel()
	ticker := time.NewTicker(drainPollInterval)
	defer ticker.Stop()
	var last nodes.NodeInfo
	for {
		l, err := ask.nodes(ctx)
		switch {
		case err == nil:
			n, err := l.find(id)
			if err != nil || len(n.Workers) == 0 {
				// A node that is not known any more has ended too.
				_, err = fmt.Fprintf(e.Stdout, "%s carries nothing any more.\n", nodeCell(id))
				return err
			}
			last = n
		case ctx.Err() == nil && !engine.HasCode(err, engine.CodeUnavailable):
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if e.Ctx.Err() != nil {
				return &terminal.ExitError{
					Code: terminal.ExitFailed,
					Err:  fmt.Errorf("waiting for %s: %w", nodeCell(id), e.Ctx.Err()),
				}
			}
			return &terminal.ExitError{Code: terminal.ExitFailed, Err: &engine.Error{Code: engine.CodeUnavailable,
				Message: fmt.Sprintf("%s still carries %s after %s; it stays drained.", nodeCell(id), formatNodeLoad(last), limit),
				Hint:    "wait on with the same command, or stop the runs on their page"}}
		}
	}
}

// formatNodeLoad says what the node carries.
func formatNodeLoad(n nodes.NodeInfo) string {
	switch r, w := formatRuns(n), len(n.Workers); {
	case w == 0:
		return "nothing"
	case r == 1 && w == 1:
		return "1 run worker of 1 run"
	case r == 1:
		return fmt.Sprintf("%d run workers of 1 run", w)
	default:
		return fmt.Sprintf("%d run workers of %d runs", w, r)
	}
}

// resumeTimeout is how long a node that answers may take to say that it takes work again.
const resumeTimeout = 5 * time.Second

// Resume lets a node take work again that was drained or removed.
func (ask NodeAPI) Resume(e *terminal.Env, called string) error {
	n, err := ask.setNodeState(e.Ctx, called, "resume")
	if err != nil {
		return err
	}
	end := time.Now().Add(resumeTimeout)
	for !n.AcceptingWork && n.State == nodes.NodeDraining && time.Now().Before(end) {
		select {
		case <-time.After(drainPollInterval):
		case <-e.Ctx.Done():
			return &terminal.ExitError{
				Code: terminal.ExitFailed,
				Err:  fmt.Errorf("waiting for %s: %w", nodeName(n), e.Ctx.Err()),
			}
		}
		l, err := ask.nodes(e.Ctx)
		if err != nil {
			return err
		}
		if n, err = l.find(n.NodeID); err != nil {
			return err
		}
	}
	if n.AcceptingWork {
		_, err = fmt.Fprintf(e.Stdout, "%s takes work again.\n", nodeName(n))
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "Nobody keeps %s from work any more. It takes none yet: %s.\n", nodeName(n),
		terminal.StripControls(n.OutReason))
	return err
}
