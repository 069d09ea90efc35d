package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// Plugins is the library of plugins as the API needs it. A reference is a name, a
// name@version or a SHA-256.
type Plugins interface {
	Entries(ctx context.Context) ([]plugin.Entry, error)
	Entry(ctx context.Context, ref string) (plugin.Entry, error)
	// Upload stores a file that passes quarantine; created is false when it was there.
	Upload(ctx context.Context, wasm []byte, by string) (e plugin.Entry, created bool, err error)
	Enable(ctx context.Context, ref, by string) (plugin.Entry, error)
	Disable(ctx context.Context, ref, by string) (plugin.Entry, error)
	Delete(ctx context.Context, ref string) (engine.PluginRef, error)
	// Usable is an error when the reference means a plugin that is disabled.
	Usable(ctx context.Context, kind, ref string) error
}

// PluginList is every plugin, without the statements they declare.
type PluginList struct {
	Plugins []plugin.Entry `json:"plugins"`
}

var entryType = reflect.TypeFor[plugin.Entry]()

type pluginInput struct {
	Name string `path:"name" maxLength:"200" doc:"name, or name@version, or SHA-256"`
}

// Resolve decodes the name as it came in the address.
func (i *pluginInput) Resolve(huma.Context) []error {
	i.Name = unescaped(i.Name)
	return nil
}

func (a *API) registerPlugins(app *fiber.App) {
	list := op(http.MethodGet, "/api/plugins", "list-plugins", tagPlugins, "List plugins")
	list.Description = "Those of the program first, then the uploaded ones, the highest version of each name first. " +
		"The statements of a manifest are left out; reading one plugin has them."
	handle(a, list, a.listPlugins)
	inspect := op(http.MethodGet, "/api/plugins/{name}", "get-plugin", tagPlugins, "Inspect a plugin", http.StatusNotFound)
	inspect.Description = "Its manifest with the JSON Schema of its parameters and every statement it declares, its " +
		"imports and exports, and who uses it. A bare name means the highest version that is enabled."
	handle(a, inspect, func(ctx context.Context, in *pluginInput) (*body[plugin.Entry], error) {
		if !wellFormedID(in.Name) {
			return nil, httpx.NotFound("plugin", in.Name)
		}
		e, err := a.Plugins.Entry(ctx, in.Name)
		if err != nil {
			return nil, notFoundAs(err, "plugin", in.Name)
		}
		return &body[plugin.Entry]{e}, nil
	})
	a.raw(app, describeUpload(a), a.upload)
	enable := op(http.MethodPost, "/api/plugins/{name}/enable", "enable-plugin", tagPlugins, "Enable an uploaded plugin",
		http.StatusNotFound, http.StatusConflict)
	enable.Description = "Only an admin may: a session, or a token of the scope admin. It is loaded first: what cannot " +
		"be loaded stays disabled."
	handle(a, enable, func(ctx context.Context, in *pluginInput) (*body[plugin.Entry], error) {
		return a.switchPlugin(ctx, in.Name, "enable", a.Plugins.Enable)
	})
	disable := op(http.MethodPost, "/api/plugins/{name}/disable", "disable-plugin", tagPlugins,
		"Disable an uploaded plugin", http.StatusNotFound, http.StatusConflict)
	disable.Description = "Only an admin may: a session, or a token of the scope admin. No new run can use it; live " +
		"ones go on."
	handle(a, disable, func(ctx context.Context, in *pluginInput) (*body[plugin.Entry], error) {
		return a.switchPlugin(ctx, in.Name, "disable", a.Plugins.Disable)
	})
	remove := op(http.MethodDelete, "/api/plugins/{name}", "delete-plugin", tagPlugins, "Delete an uploaded plugin",
		http.StatusNotFound, http.StatusConflict)
	remove.Description = "Only an admin may: a session, or a token of the scope admin. It is 409 while a template " +
		"names it or a live run executes it; the sentence names them."
	remove.DefaultStatus = http.StatusNoContent
	handle(a, remove, a.deletePlugin)
}

func (a *API) listPlugins(ctx context.Context, _ *struct{}) (*body[PluginList], error) {
	entries, err := a.Plugins.Entries(ctx)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		entries[i].Manifest.Statements = nil
	}
	return &body[PluginList]{PluginList{Plugins: entries}}, nil
}

// admin refuses everyone who is not one, and tokens that do not carry it: a leaked token
// of a pipeline must not approve the plugin that it has uploaded.
func (a *API) admin(ctx context.Context, what string) error {
	id := a.identity(ctx)
	switch {
	case id.User.Role != store.RoleAdmin:
		return &engine.Error{Code: engine.CodeForbidden, Message: fmt.Sprintf("Only an admin may %s.", what),
			Hint: "Ask one to do it, or to make you one: Settings, Users."}
	case !id.MayGrant():
		return &engine.Error{Code: engine.CodeForbidden,
			Message: fmt.Sprintf("A token of the scope %s cannot %s.", id.Token.Scope, what),
			Hint:    "Do it on the page, or with a token of the scope admin: loadstone token NAME --scope admin"}
	}
	return nil
}

func (a *API) switchPlugin(ctx context.Context, ref, verb string,
	act func(ctx context.Context, ref, by string) (plugin.Entry, error)) (*body[plugin.Entry], error) {
	if err := a.admin(ctx, verb+" a plugin"); err != nil {
		return nil, err
	}
	if !wellFormedID(ref) {
		return nil, httpx.NotFound("plugin", ref)
	}
	user := a.identity(ctx).User
	e, err := act(ctx, ref, user.Name)
	if err != nil {
		return nil, notFoundAs(err, "plugin", ref)
	}
	a.audit.Record(ctx, user.UserID, "plugin."+verb, e.SHA256, e.Name+"@"+e.Version)
	return &body[plugin.Entry]{e}, nil
}

func (a *API) deletePlugin(ctx context.Context, in *pluginInput) (*nothing, error) {
	if err := a.admin(ctx, "delete a plugin"); err != nil {
		return nil, err
	}
	if !wellFormedID(in.Name) {
		return nil, httpx.NotFound("plugin", in.Name)
	}
	gone, err := a.Plugins.Delete(ctx, in.Name)
	if err != nil {
		return nil, notFoundAs(err, "plugin", in.Name)
	}
	a.audit.Record(ctx, a.identity(ctx).User.UserID, "plugin.delete", gone.SHA256, gone.Name+"@"+gone.Version)
	return &nothing{}, nil
}

// usablePlugins refuses a template that names a disabled plugin, by its field.
func (a *API) usablePlugins(ctx context.Context, s engine.Scenario) error {
	type name struct{ field, kind, ref string }
	names := []name{{"workload.plugin", plugin.KindWorkload, s.Workload.Plugin}}
	if s.Matrix == nil {
		names = append(names, name{"target.adapter", plugin.KindAdapter, s.Target.Adapter})
	} else {
		for i, t := range s.Matrix.Targets {
			names = append(names, name{fmt.Sprintf("matrix.targets[%d].adapter", i), plugin.KindAdapter, t.Adapter})
		}
	}
	for _, named := range names {
		err := a.Plugins.Usable(ctx, named.kind, named.ref)
		var e *engine.Error
		if errors.As(err, &e) && errors.Is(err, plugin.ErrDisabled) {
			return &engine.Error{Code: e.Code, Message: e.Message, Hint: e.Hint, Cause: err,
				Fields: []engine.FieldError{{Field: named.field, Message: "this plugin is disabled", Hint: e.Hint}}}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func jsonText(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("writing the answer: %w", err)
	}
	return text, nil
}
