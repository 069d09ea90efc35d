package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server/httpx"
	"github.com/loadstone-db/loadstone/server/live"
)

func (a *API) registerSockets(app *fiber.App) {
	message := a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[live.Message](), true, "Message")
	for _, path := range []string{"/ws/runs/{id}", "/ws/test/{id}"} {
		o := op(http.MethodGet, path, "watch-run", tagRuns, "Watch a run (WebSocket)", http.StatusNotFound,
			http.StatusForbidden, http.StatusUpgradeRequired)
		o.Description = "A WebSocket. It sends one message at once and one a second, each a full snapshot, and closes " +
			"with 1000 after the last. What is sent to it is ignored."
		if path == "/ws/test/{id}" {
			o.OperationID, o.Tags, o.Deprecated = "tests-watch-run", []string{tagOld}, true
		}
		o.Parameters = []*huma.Param{{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}}}
		o.Responses = map[string]*huma.Response{"101": {Description: "Switching protocols; messages of this form follow.",
			Content: map[string]*huma.MediaType{fiber.MIMEApplicationJSON: {Schema: message}}}}
		a.raw(app, o, a.watch)
	}
}

func (a *API) watch(c *fiber.Ctx) error {
	if !a.Guard.SameOrigin(c) {
		return httpx.Write(c, &engine.Error{Code: engine.CodeForbidden,
			Message: "This socket was opened by another site's page.",
			Hint:    "Use Loadstone's own page, or a client that sends no Origin."})
	}
	id := unescaped(c.Params("id"))
	if err := a.exists(c.UserContext(), id); err != nil {
		return httpx.Write(c, err)
	}
	caller := a.identity(c.UserContext())
	ended, stop := a.Auth.Watch(caller)
	err := a.Hub.Upgrade(c, id, live.Viewer{
		Revoked: ended, OnClose: stop, ExpiresAt: caller.Token.ExpiresAt.Time,
		StillValid: func(ctx context.Context) bool { return a.Auth.StillValid(ctx, caller) },
	})
	if err != nil {
		stop()
	}
	if errors.Is(err, live.ErrNotASocket) {
		c.Set(fiber.HeaderUpgrade, "websocket")
		c.Set("Sec-WebSocket-Version", "13")
		return httpx.Write(c, fiber.ErrUpgradeRequired)
	}
	if err != nil {
		return httpx.Write(c, err)
	}
	return nil
}
