package protocol

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// envelope is room for what a message holds beside its documents.
const envelope = 64 << 10

// Fits refuses an assignment that is too large for a message to a node of another process, before anything is started:
// it says what of it is large, and what makes it smaller.
func (m AssignRun) Fits() error { return m.fits(MaxMessage) }

func (m AssignRun) fits(most int) error {
	type piece struct {
		what, cure string
		bytes      int
	}
	var pieces []piece
	add := func(what, cure string, v any) {
		text, err := json.Marshal(v)
		if err == nil { // what cannot be written is told when it is sent
			pieces = append(pieces, piece{what, cure, len(text)})
		}
	}
	if m.Plan != nil {
		add("its statements", "Issue fewer or shorter statements.", m.Plan.Statements)
		add("the sampled keys of its tables", "Sample fewer keys (target.params.key_sample).", m.Plan.Pools)
		rest := *m.Plan
		rest.Statements, rest.Pools = nil, nil
		add("its tables and session", "Name fewer tables and statements of the session.", rest)
	}
	workload := m.Workload
	if workload.Feed != nil {
		add("its feed", "Replay a part of it, or let the server's own node carry the run.", workload.Feed)
		workload.Feed = nil
	}
	add("the parameters of its workload", "Give it fewer or shorter parameters.", workload.Params)
	workload.Params = nil
	add("its load", "Give it fewer stages.", workload)
	sum := envelope + len(m.DSN.Reveal())
	for _, p := range pieces {
		sum += p.bytes
	}
	if sum <= most {
		return nil
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return b.bytes - a.bytes })
	var large, cures []string
	for _, p := range pieces {
		if len(large) > 0 && p.bytes < most/8 {
			break
		}
		large = append(large, fmt.Sprintf("%s (%.1f MB)", p.what, float64(p.bytes)/(1<<20)))
		cures = append(cures, p.cure)
	}
	return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("The run cannot be given to a node: what is "+
		"sent takes %.1f MB, and at most %d MB fit into a message. Large are %s, as they are written there: some characters "+
		"take six bytes.", float64(sum)/(1<<20), most>>20, strings.Join(large, ", ")),
		Hint: strings.Join(cures, " ")}
}
