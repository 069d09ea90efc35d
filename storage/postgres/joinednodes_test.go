package postgres_test

import "testing"

func TestJoinedAddresses(t *testing.T) {
	s, _ := open(t)
	ctx := t.Context()
	for range 2 {
		must(t, s.NoteJoinedAddress(ctx, "server-1", "127.0.0.1:9090"))
	}
	for server, want := range map[string]bool{"server-1": true, "server-2": false} {
		if got, err := s.HasJoinedAddress(ctx, server, "127.0.0.1:9090"); err != nil || got != want {
			t.Errorf("%s: %t, %v", server, got, err)
		}
	}
}
