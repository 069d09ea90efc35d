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

// API sends a request to a server and reads its answer into out.
type API func(ctx context.Context, method, path string, in, out any) error

const base = "/api/v1/nodes"

// List is every node as one server sees it.
type List struct {
	Server string           `json:"server"`
	At     engine.Time      `json:"at"`
	Nodes  []nodes.InfoNode `json:"nodes"`
}

func (ask API) nodes(ctx context.Context) (l List, err error) {
	err = ask(ctx, http.MethodGet, base, nil, &l)
	return l, err
}

// List writes every node that the server knows: as a table, or as the API answers it.
func (ask API) List(ctx context.Context, w io.Writer, asJSON bool) error {
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
func (ask API) Catalog(ctx context.Context, out io.Writer) error {
	var list struct {
		Addresses []store.NodeAddress `json:"addresses"`
	}
	if err := ask(ctx, http.MethodGet, addressesPath, nil, &list); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ADDRESS\tADDED BY\tADDED AT")
	for _, a := range list.Addresses {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", nodeCell(a.Address), nodeCell(a.AddedBy), a.AddedAt.UTC().Format(time.RFC3339))
	}
	return w.Flush()
}

// none stands where there is nothing to show.
const none = "–"

// Table writes the nodes for a person, the reason of those that take no work below them.
func (l List) Table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NODE\tADDRESS\tSTATE\tRUNS\tCONNECTIONS\tVERSION\tRTT\tCLOCK")
	for _, n := range l.Nodes {
		address := nodeCell(n.Address)
		if n.Local {
			address = "(in the server)"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", nodeCell(n.NodeID), address, n.State, runs(n),
			connections(n), nodeCell(n.Version), terminal.MillisOrNone(n.RTTMs), clock(n))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, n := range l.Nodes {
		if !n.AcceptingWork && n.OutReason != "" {
			if _, err := fmt.Fprintf(out, "%s takes no new work: %s\n", name(n),
				terminal.Shown(n.OutReason)); err != nil {
				return err
			}
		}
	}
	return nil
}

// nodeCell is a text of others as a table shows it, in one column and one line.
func nodeCell(s string) string {
	if s = strings.Join(strings.Fields(terminal.Harmless(s)), " "); s == "" {
		return none
	}
	return terminal.Shorten(s, terminal.MostShown)
}

// name is what an operator calls the node.
func name(n nodes.InfoNode) string {
	if n.NodeID == "" {
		return nodeCell(n.Address)
	}
	return nodeCell(n.NodeID)
}

// runs counts those of which the node carries a part.
func runs(n nodes.InfoNode) int {
	of := map[string]bool{}
	for _, w := range n.Workers {
		of[w.RunID] = true
	}
	return len(of)
}

// connections are those that are given, of how many.
func connections(n nodes.InfoNode) string {
	switch {
	case n.NodeID == "":
		return none
	case n.Capacity <= 0:
		return fmt.Sprintf("%d, no limit", n.Used)
	}
	return fmt.Sprintf("%d of %d", n.Used, n.Capacity)
}

// clock is how far the node's is ahead of the server's, and how far that may be wrong.
func clock(n nodes.InfoNode) string {
	if n.ClockOffsetMs == nil {
		return none
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
func (l List) find(called string) (nodes.InfoNode, error) {
	var at []nodes.InfoNode
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
		return nodes.InfoNode{}, e
	}
	e.Hint = "name one of " + strings.Join(names[:min(len(names), 8)], ", ")
	if len(names) > 8 {
		e.Hint += " …: `loadstone node list` shows all"
	}
	return nodes.InfoNode{}, e
}

// wish has the server do something with a node, and returns the node as it is then.
func (ask API) wish(ctx context.Context, called, verb string) (n nodes.InfoNode, err error) {
	l, err := ask.nodes(ctx)
	if err != nil {
		return n, err
	}
	if n, err = l.find(called); err != nil {
		return n, err
	}
	err = ask(ctx, http.MethodPost, base+"/"+url.PathEscape(n.NodeID)+"/"+verb, map[string]any{}, &n)
	return n, err
}

// lookEvery is how often Drain looks whether the node has ended what it carried.
const lookEvery = 500 * time.Millisecond

// Drain has a node end what it carries and take nothing new, and waits so long for its end.
func (ask API) Drain(e *terminal.Env, called string, wait time.Duration) error {
	n, err := ask.wish(e.Ctx, called, "drain")
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(e.Stdout, "%s takes no new work; it carries %s. `loadstone node resume %s` takes it back.\n",
		name(n), load(n), name(n)); err != nil {
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
	return ask.await(e, n.NodeID, wait)
}

func (l List) acceptsWork() bool {
	for _, n := range l.Nodes {
		if n.AcceptingWork {
			return true
		}
	}
	return false
}

// await waits until the node carries nothing any more.
func (ask API) await(e *terminal.Env, id string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(e.Ctx, limit)
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var last nodes.InfoNode
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
				return &terminal.Error{Code: terminal.ExitFailed, Err: fmt.Errorf("waiting for %s: %w", nodeCell(id), e.Ctx.Err())}
			}
			return &terminal.Error{Code: terminal.ExitFailed, Err: &engine.Error{Code: engine.CodeUnavailable,
				Message: fmt.Sprintf("%s still carries %s after %s; it stays drained.", nodeCell(id), load(last), limit),
				Hint:    "wait on with the same command, or stop the runs on their page"}}
		}
	}
}

// load says what the node carries.
func load(n nodes.InfoNode) string {
	switch r, w := runs(n), len(n.Workers); {
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

// hearLimit is how long a node that answers may take to say that it takes work again.
const hearLimit = 5 * time.Second

// Resume lets a node take work again that was drained or removed.
func (ask API) Resume(e *terminal.Env, called string) error {
	n, err := ask.wish(e.Ctx, called, "resume")
	if err != nil {
		return err
	}
	for end := time.Now().Add(hearLimit); !n.AcceptingWork && n.State == nodes.NodeDraining && time.Now().Before(end); {
		select {
		case <-time.After(lookEvery):
		case <-e.Ctx.Done():
			return &terminal.Error{Code: terminal.ExitFailed, Err: fmt.Errorf("waiting for %s: %w", name(n), e.Ctx.Err())}
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
		_, err = fmt.Fprintf(e.Stdout, "%s takes work again.\n", name(n))
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "Nobody keeps %s from work any more. It takes none yet: %s.\n", name(n),
		terminal.Harmless(n.OutReason))
	return err
}
