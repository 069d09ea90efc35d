package api

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/server/httpx"
	"github.com/loadstone-db/loadstone/server/openapi"
)

func (a *API) registerServer(app *fiber.App) {
	handle(a, op(http.MethodGet, "/api/info", "info", tagServer, "About this server"),
		func(ctx context.Context, _ *struct{}) (*body[Info], error) {
			return &body[Info]{a.Info(ctx)}, nil
		})
	document := sync.OnceValues(func() ([]byte, error) { return json.Marshal(a.huma.OpenAPI()) })
	spec := op(http.MethodGet, "/api/openapi.json", "openapi", tagServer, "This document")
	spec.Responses = map[string]*huma.Response{"200": {Description: "OpenAPI 3.1",
		Content: map[string]*huma.MediaType{fiber.MIMEApplicationJSON: {Schema: &huma.Schema{Type: huma.TypeObject}}}}}
	a.raw(app, spec, func(c *fiber.Ctx) error {
		text, err := document()
		if err != nil {
			return httpx.Write(c, err)
		}
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		return c.Send(text)
	})
	page := sync.OnceValue(func() []byte { return openapi.Page(a.huma.OpenAPI()) })
	docs := op(http.MethodGet, "/api/docs", "docs", tagServer, "This document, to read")
	docs.Responses = map[string]*huma.Response{"200": {Description: "A page",
		Content: map[string]*huma.MediaType{fiber.MIMETextHTML: {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	a.raw(app, docs, func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
		return c.Send(page())
	})
	a.describeOutside()
}

// Healthy is the answer of a process that lives.
type Healthy struct {
	Status string `json:"status" enum:"ok"`
}

// Ready is the answer of a server that can work.
type Ready struct {
	Status string      `json:"status" enum:"ready"`
	Checks ReadyChecks `json:"checks"`
}

// ReadyChecks is what was looked at.
type ReadyChecks struct {
	ControlStore string `json:"control_store" enum:"ok"`
	Results      string `json:"results" enum:"ok,excluded" doc:"Whether results can be stored."`
	Nodes        int    `json:"nodes" minimum:"0" doc:"Nodes that take new run workers now; 0 where that check is left out, or runs wait for nodes."`
}

// describeOutside adds the addresses that the server itself serves.
func (a *API) describeOutside() {
	schemas := a.huma.OpenAPI().Components.Schemas
	answers := func(media, description string, schema *huma.Schema, errors ...int) map[string]*huma.Response {
		all := map[string]*huma.Response{"200": {Description: description,
			Content: map[string]*huma.MediaType{media: {Schema: schema}}}}
		openapi.DescribeProblems(a.huma.OpenAPI(), all, errors...)
		return all
	}
	healthy := schemas.Schema(reflect.TypeFor[Healthy](), true, "Healthy")
	ready := schemas.Schema(reflect.TypeFor[Ready](), true, "Ready")
	text := &huma.Schema{Type: huma.TypeString}
	for _, o := range []huma.Operation{
		{OperationID: "healthz", Path: "/healthz", Summary: "Whether the process lives", Security: []map[string][]string{{}},
			Responses: answers(fiber.MIMEApplicationJSON, "It does.", healthy)},
		{OperationID: "readyz", Path: "/readyz",
			Summary:  "Whether a run can be created now: control store, results and nodes",
			Security: []map[string][]string{{}},
			Parameters: []*huma.Param{{Name: "exclude", In: "query",
				Description: "Checks to leave out, with a comma between them: nodes, results.",
				Schema:      &huma.Schema{Type: huma.TypeString}}},
			Responses: answers(fiber.MIMEApplicationJSON, "It can.", ready, http.StatusUnprocessableEntity,
				http.StatusServiceUnavailable)},
		{OperationID: "metrics", Path: "/metrics", Summary: "Metrics for Prometheus",
			Responses: answers(fiber.MIMETextPlain, "The text format of Prometheus.", text, http.StatusUnauthorized,
				http.StatusInternalServerError, http.StatusServiceUnavailable)},
	} {
		o.Method, o.Tags = http.MethodGet, []string{tagServer}
		a.routes = append(a.routes, Route{o.Method, o.Path, o.OperationID})
		a.huma.OpenAPI().AddOperation(&o)
	}
}
