package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/loadstone-db/loadstone/deploy/program"
)

// attacks is the list, in the order in which they are tried. Each topic has a file.
var attacks = slices.Concat(walls, controlStore, fragments, streamAttacks, console, resultsdb, names, rights, restored)

// walls are what held in the round before: a stage on which they do not hold is set up wrongly.
var walls = []attack{
	{0, "a viewer makes a user", func(ctx context.Context, s *stage) (string, error) {
		for _, c := range slices.Concat(s.users[vera].tokens, s.users[vera].sessions) {
			err := c.Do(ctx, http.MethodPost, "/api/users", map[string]any{"name": "mallory", "role": "admin"}, nil)
			if err := refused(err); err != nil {
				return "", err
			}
		}
		return "refused on both servers, by token and by session", nil
	}},
	{0, "a stranger reads runs", func(ctx context.Context, s *stage) (string, error) {
		for _, c := range s.admin {
			err := (&program.Client{Base: c.Base}).Do(ctx, http.MethodGet, "/api/runs", nil, nil)
			if got := program.Status(err); got != http.StatusUnauthorized {
				return "", fmt.Errorf("the answer is %d", got)
			}
		}
		return "401 on both servers", nil
	}},
}
