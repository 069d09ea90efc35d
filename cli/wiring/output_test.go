package wiring

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"
)

// TestAnOutputThatNobodyReadsHoldsNoQuery: what prints there ends with its query, and so does what waits for its turn.
func TestAnOutputThatNobodyReadsHoldsNoQuery(t *testing.T) {
	r, w := io.Pipe()
	defer func() { _ = r.Close() }()
	shared := &sharedOutput{turn: make(chan struct{}, 1), to: w}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := outputUntil{ctx, shared}.Write([]byte("a row\n"))
			ended <- err
		}()
	}
	for len(shared.turn) == 0 { // one of them writes
		time.Sleep(time.Millisecond)
	}
	cancel()
	for range 2 {
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("a query waits for who does not read")
		}
	}
	read := make([]byte, 6)
	if _, err := io.ReadFull(r, read); err != nil || string(read) != "a row\n" {
		t.Errorf("%q, %v", read, err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	if n, err := (outputUntil{t.Context(), shared}).Write([]byte("later\n")); n != 6 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
