// This part holds the handlers of notifications: whom admins have told how runs ended.

package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// Notifications are whom is told how runs ended.
type Notifications struct {
	Version    int64             `json:"version" doc:"0 before anything was saved; to be sent back with a change."`
	Hooks      []notify.Hook     `json:"hooks" nullable:"false"`
	Deliveries []notify.Delivery `json:"deliveries" nullable:"false" doc:"The last attempts of this server since it started, the newest first."`
}

// GivenHook is a hook as an admin writes it.
type GivenHook struct {
	ID         string            `json:"id,omitempty" maxLength:"100" doc:"Of a hook that there is; without it a new one is made."`
	Name       string            `json:"name" maxLength:"200"`
	Kind       string            `json:"kind" enum:"webhook,slack"`
	URL        *secret.Secret    `json:"url,omitempty" maxLength:"2000" doc:"Where to; without it, that of the hook stays. Only scheme, host and port are shown again."`
	Secret     *secret.Secret    `json:"secret,omitempty" maxLength:"500" doc:"What bodies are signed with: X-Loadstone-Signature is sha256= and the HMAC of X-Loadstone-Timestamp, a dot and the body. Without it that of the hook stays; an empty one is none."`
	Events     []notify.Event    `json:"events" nullable:"false" doc:"finished, failed, regressed."`
	TemplateID string            `json:"template_id,omitempty" maxLength:"100" doc:"Tell of runs of this template alone."`
	Tags       map[string]string `json:"tags,omitempty" doc:"Tell of runs alone that have these tags."`
	Resume     bool              `json:"resume,omitempty" doc:"Takes over a hook that is there, as it is: it is the caller's then, and no longer suspended. What is changed is the caller's without it."`
}

type notificationSaveInput struct {
	Body struct {
		Version int64       `json:"version" minimum:"0"`
		Hooks   []GivenHook `json:"hooks" nullable:"false"`
	}
}

type notificationBody[T any] struct{ Body T }

const (
	notificationPath = "/api/v1/notifications"
	notificationTag  = "Server"
)

// RegisterNotifications adds the routes.
func RegisterNotifications(a *API, n *notify.Notifier, s store.Settings) {
	const what = "decide who is told of runs"
	shown := func(l notify.HookList) *notificationBody[Notifications] {
		out := &notificationBody[Notifications]{Notifications{Version: l.Version, Hooks: l.Hooks, Deliveries: n.Deliveries()}}
		if out.Body.Hooks == nil {
			out.Body.Hooks = []notify.Hook{}
		}
		if out.Body.Deliveries == nil {
			out.Body.Deliveries = []notify.Delivery{}
		}
		return out
	}
	read := NewOperation(
		http.MethodGet,
		notificationPath,
		"get-notifications",
		notificationTag,
		"Read who is told how runs ended (admins)",
		http.StatusForbidden,
	)
	Handle(a, read, func(ctx context.Context, _ *struct{}) (*notificationBody[Notifications], error) {
		if err := a.Admin(ctx, what); err != nil {
			return nil, err
		}
		l, err := notify.ReadHooks(ctx, s)
		if err != nil {
			return nil, err
		}
		return shown(l), nil
	})
	save := NewOperation(
		http.MethodPut,
		notificationPath,
		"save-notifications",
		notificationTag,
		"Decide who is told how runs ended (admins)",
		http.StatusForbidden,
		http.StatusConflict,
	)
	Handle(a, save, func(ctx context.Context, in *notificationSaveInput) (*notificationBody[Notifications], error) {
		if err := a.Admin(ctx, what); err != nil {
			return nil, err
		}
		given := make([]notify.HookInput, 0, len(in.Body.Hooks))
		for _, h := range in.Body.Hooks {
			given = append(given, notify.HookInput{Hook: notify.Hook{ID: h.ID, Name: h.Name, Kind: h.Kind, Events: h.Events,
				TemplateID: h.TemplateID, Tags: h.Tags}, NewURL: h.URL, NewSecret: h.Secret, Resume: h.Resume})
		}
		l, err := n.Save(ctx, in.Body.Version, given, a.User(ctx))
		if err != nil {
			return nil, err
		}
		id, _ := auth.IdentityOf(ctx)
		a.AuditLog().Record(ctx, id.User.UserID, "notifications.save", notificationPath, "")
		return shown(l), nil
	})
	try := NewOperation(http.MethodPost, notificationPath+"/{id}/test", "test-notification", notificationTag,
		"Tell a hook that it is tried, and say what came of it (admins)", http.StatusForbidden, http.StatusNotFound)
	Handle(a, try, func(ctx context.Context, in *IDInput) (*notificationBody[notify.Delivery], error) {
		if err := a.Admin(ctx, what); err != nil {
			return nil, err
		}
		d, err := n.SendTest(ctx, in.ID)
		if errors.Is(err, store.ErrNotFound) {
			return nil, httpx.NotFound("notification", in.ID)
		}
		if err != nil {
			return nil, err
		}
		return &notificationBody[notify.Delivery]{d}, nil
	})
}
