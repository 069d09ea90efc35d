package fragment

import (
	"encoding/json"
	"fmt"

	"github.com/loadstone-db/loadstone/engine/base/textsafe"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/stream/exec"
)

// The words. They travel between versions: a number is never given another meaning.
const (
	Ready int64 = iota + 1
	Go
	Frame
	Report
	Drain
	Stop
	End
)

// Message is one of those that go over a link. The body is that of a Frame, or the JSON of a Report or an End.
type Message = protocol.FragmentMessage

// Link is the way to a fragment, or to its owner.
type Link = protocol.FragmentLink

// Key names a fragment on its worker.
type Key = protocol.FragmentKey

// ErrLost says that a link has ended.
var ErrLost = protocol.ErrFragmentLost

// EndReport is what a fragment came to.
type EndReport struct {
	// Failure is its error; empty where its sources have ended, or it was told to stop.
	Failure string `json:"failure,omitempty"`
	// Terminal: another attempt is of no use.
	Terminal bool `json:"terminal,omitempty"`
	// Stopped: it was told to, or to drain.
	Stopped bool `json:"stopped,omitempty"`
	// Counts are what became of rows until then.
	Counts exec.Counts `json:"counts"`
}

// newMessage is a value as a word.
func newMessage(k int64, v any) Message {
	body, err := json.Marshal(v)
	if err != nil {
		body = []byte("{}") // numbers and texts can be written
	}
	return Message{Kind: k, Body: body}
}

// ParseCounts reads a Report.
func ParseCounts(w Message) (c exec.Counts, err error) {
	if err := json.Unmarshal(w.Body, &c); err != nil {
		return c, fmt.Errorf("reading what a fragment reports: %w", err)
	}
	c.Waiting = textsafe.Shorten(textsafe.Multiline(c.Waiting), maxFailureLength)
	return c, nil
}

// maxFailureLength bounds the error of a fragment, in characters: it comes from another machine, and is kept with its
// query.
const maxFailureLength = 4 << 10

// ParseEnd reads an End. Its failure has nothing that would be obeyed rather than shown.
func ParseEnd(w Message) (e EndReport, err error) {
	if err := json.Unmarshal(w.Body, &e); err != nil {
		return e, fmt.Errorf("reading what a fragment came to: %w", err)
	}
	e.Failure, e.Counts.Waiting = textsafe.Shorten(textsafe.Multiline(e.Failure), maxFailureLength), ""
	return e, nil
}

// Pipe is a link within a process: what is sent at one end is received at the other.
func Pipe() (owner, worker Link) {
	p := &pipe{closed: make(chan struct{}), down: make(chan Message), up: make(chan Message)}
	return &pipeEnd{p, p.down, p.up}, &pipeEnd{p, p.up, p.down}
}
