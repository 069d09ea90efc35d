// This part holds the handlers of lists of runs that users keep under names: their own, and those that are
// shared with everybody.

package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

const (
	runViewTag  = "Runs"
	runViewBase = "/api/v1/run-views"
)

// RunViewList is the caller's views, and those that are shared, by name.
type RunViewList struct {
	Views []store.RunView `json:"views" nullable:"false"`
	Most  int             `json:"most" doc:"How many a user may keep."`
}

// RunViewInput is a view to be kept.
type RunViewInput struct {
	Name  string `json:"name" minLength:"1" maxLength:"80"`
	Query string `json:"query,omitempty" maxLength:"4000" doc:"As it stands in the address of the page Runs: status, search, template, range, tag, sort, columns, trend, figure."`
}

// RunViewChange is a view as it shall be.
type RunViewChange struct {
	RunViewInput
	Version int64 `json:"version" minimum:"1" maximum:"9007199254740991" doc:"The version that was edited; 409 if somebody saved another since; the answer names the user and the time."`
}

// RunViewShared says who sees a view.
type RunViewShared struct {
	Shared  bool  `json:"shared" doc:"Whether everybody sees it."`
	Version int64 `json:"version" minimum:"1" maximum:"9007199254740991"`
}

type (
	runViewAddInput    struct{ Body RunViewInput }
	runViewChangeInput struct {
		IDInput
		Body RunViewChange
	}
	runViewShareInput struct {
		IDInput
		Body RunViewShared
	}
	runViewBody[T any] struct{ Body T }
)

// RegisterRunViews adds the routes.
func RegisterRunViews(a *API) {
	list := NewOperation(
		http.MethodGet,
		runViewBase,
		"list-run-views",
		runViewTag,
		"List one's own views of runs, and those that are shared",
	)
	Handle(a, list, func(ctx context.Context, _ *struct{}) (*runViewBody[RunViewList], error) {
		views, err := a.Store.RunViews(ctx, currentUser(ctx).UserID)
		return &runViewBody[RunViewList]{RunViewList{append([]store.RunView{}, views...), store.MaxRunViews}}, err
	})
	add := NewOperation(
		http.MethodPost,
		runViewBase,
		"add-run-view",
		runViewTag,
		"Keep a view of runs under a name",
		http.StatusConflict,
	)
	add.DefaultStatus = http.StatusCreated
	add.Description = "It is the caller's own, a viewer's too. A user has one view of a name."
	Handle(a, add, func(ctx context.Context, in *runViewAddInput) (*runViewBody[store.RunView], error) {
		u := currentUser(ctx)
		v, err := a.Store.AddRunView(ctx, store.RunView{Name: in.Body.Name, Query: in.Body.Query, OwnerID: u.UserID,
			Owner: u.Name, UpdatedBy: u.Name})
		if err == nil {
			a.Audit(ctx, "run-view.add", v.ViewID, v.Name)
		}
		return &runViewBody[store.RunView]{v}, err
	})
	change := NewOperation(
		http.MethodPut,
		runViewBase+"/{id}",
		"change-run-view",
		runViewTag,
		"Change a view of runs",
		http.StatusNotFound,
		http.StatusConflict,
	)
	change.Description = "It is for its owner and admins."
	Handle(a, change, func(ctx context.Context, in *runViewChangeInput) (*runViewBody[store.RunView], error) {
		v, err := ownRunView(ctx, a, in.ID)
		if err != nil {
			return nil, err
		}
		v.Name, v.Query, v.Version = in.Body.Name, in.Body.Query, in.Body.Version
		return runViewSaved(ctx, a, "run-view.change", v)
	})
	share := NewOperation(
		http.MethodPut,
		runViewBase+"/{id}/shared",
		"share-run-view",
		runViewTag,
		"Show a view of runs to everybody, or not",
		http.StatusNotFound,
		http.StatusConflict,
	)
	share.Description = "It is for its owner, where that is an operator, and for admins. Others see it and do not " +
		"change it."
	Handle(a, share, func(ctx context.Context, in *runViewShareInput) (*runViewBody[store.RunView], error) {
		v, err := ownRunView(ctx, a, in.ID)
		if err != nil {
			return nil, err
		}
		v.Shared, v.Version = in.Body.Shared, in.Body.Version
		action := "run-view.share"
		if !v.Shared {
			action = "run-view.unshare"
		}
		return runViewSaved(ctx, a, action, v)
	})
	remove := NewOperation(
		http.MethodDelete,
		runViewBase+"/{id}",
		"delete-run-view",
		runViewTag,
		"Delete a view of runs",
		http.StatusNotFound,
	)
	remove.DefaultStatus = http.StatusNoContent
	Handle(a, remove, func(ctx context.Context, in *IDInput) (*struct{}, error) {
		v, err := ownRunView(ctx, a, in.ID)
		if err == nil {
			err = a.Store.DeleteRunView(ctx, v.ViewID)
		}
		if err == nil {
			a.Audit(ctx, "run-view.delete", v.ViewID, v.Name)
		}
		return &struct{}{}, err
	})
}

func currentUser(ctx context.Context) store.User {
	id, _ := auth.IdentityOf(ctx)
	return id.User
}

// ownRunView is a view that the caller may change.
func ownRunView(ctx context.Context, a *API, id string) (store.RunView, error) {
	if uuid.Validate(id) != nil {
		return store.RunView{}, httpx.NotFound("view", id)
	}
	v, err := a.Store.RunView(ctx, id)
	if err != nil {
		return v, err
	}
	u := currentUser(ctx)
	if u.Role == store.RoleAdmin || v.OwnerID != "" && v.OwnerID == u.UserID {
		return v, nil
	}
	name, owner := v.Name, v.Owner
	if !v.Shared { // whose it is alone knows what it is called
		name, owner = id, ""
	}
	return v, auth.AuthorizeChange(u, "view", name, store.Access{OwnerID: v.OwnerID, Owner: owner, Restricted: true})
}

func runViewSaved(ctx context.Context, a *API, action string, v store.RunView) (*runViewBody[store.RunView], error) {
	v.UpdatedBy = currentUser(ctx).Name
	v, err := a.Store.ChangeRunView(ctx, v)
	if err == nil {
		a.Audit(ctx, action, v.ViewID, v.Name)
	}
	return &runViewBody[store.RunView]{v}, err
}
