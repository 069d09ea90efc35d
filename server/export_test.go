package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine/run/schedule"
	"github.com/loadstone-db/loadstone/server/auth"
)

// Routes lists every route that handlers serve, middleware excluded.
func (s *Server) Routes() []fiber.Route { return s.app.GetRoutes(true) }

// CloseListener ends the listener of a server that serves, as a fault of the network does.
func (s *Server) CloseListener() error { return s.listener.Close() }

// APIToken makes an API token of the scope admin for the first admin. A zero expiry means auth.TokenTTL.
func (s *Server) APIToken(ctx context.Context, name string, expires time.Time) (string, error) {
	admin, err := s.opts.Store.EnsureAdmin(ctx, "admin")
	if err != nil {
		return "", fmt.Errorf("making sure that there is an admin: %w", err)
	}
	secret, _, err := s.auth.CreateAPIToken(ctx, admin.UserID, name, auth.ScopeAdmin, expires)
	return secret, err
}

// Starter starts the runs of schedules.
func (s *Server) Starter() schedule.Starter { return s.api.ScheduleStarter(s.opts.Schedules) }

// Judged lists the kinds of work that are judged again when rights change.
func (s *Server) Judged() (kinds []string) {
	for _, w := range s.supervisor().Work {
		kinds = append(kinds, strings.TrimLeft(fmt.Sprintf("%T", w), "*"))
	}
	return kinds
}
