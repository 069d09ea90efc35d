// Package openapi says in the API's document what the types of Go cannot say themselves: how the
// engine's types look in JSON, which values there are, how refusals look. It writes the document
// as a page, too.
package openapi

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/run/admission"
	"github.com/loadstone-db/loadstone/engine/run/matrix"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/server/httpx"
)

var problemType = reflect.TypeFor[httpx.Problem]()

// schemaNames tells types of the same name from different packages apart.
var schemaNames = map[reflect.Type]string{
	reflect.TypeFor[plugin.Statement](): "PluginStatement",
	reflect.TypeFor[store.Plugin]():     "StoredPlugin",
	reflect.TypeFor[plugin.Entry]():     "PluginEntry",
	reflect.TypeFor[plugin.Use]():       "PluginUse",
	reflect.TypeFor[matrix.State]():     "MatrixState",
	reflect.TypeFor[matrix.Report]():    "MatrixReport",
	// The published document keeps the names that these types had first.
	reflect.TypeFor[engine.LiveState]():           "Payload",
	reflect.TypeFor[engine.OpsRate]():             "PayloadOps",
	reflect.TypeFor[engine.ReadWriteRates]():      "PayloadOperations",
	reflect.TypeFor[engine.ErrorStats]():          "PayloadErrors",
	reflect.TypeFor[engine.ConnectionStats]():     "PayloadConnections",
	reflect.TypeFor[engine.WorkerState]():         "PayloadWorker",
	reflect.TypeFor[engine.WorkerMetrics]():       "PayloadWorkerMetrics",
	reflect.TypeFor[engine.LoadStart]():           "Beginning",
	reflect.TypeFor[engine.ObservedError]():       "SeenError",
	reflect.TypeFor[admission.ScalingNeeds]():     "Needs",
	reflect.TypeFor[admission.NodeReservations](): "NodeRoom",
	reflect.TypeFor[admission.WaitingRun]():       "WaitingInfo",
	reflect.TypeFor[nodes.NodeInfo]():             "Node",
	reflect.TypeFor[target.WriteTarget]():         "Written",
	reflect.TypeFor[runResult]():                  "RunResult",
	reflect.TypeFor[engine.WorkerFigures]():       "Figures",
}

func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if name, ok := schemaNames[t]; ok {
		return name
	}
	name := huma.DefaultSchemaNamer(t, hint)
	if strings.HasPrefix(t.PkgPath(), "github.com/loadstone-db/loadstone/server/api") && name != "" {
		name = strings.ToUpper(name[:1]) + name[1:]
	}
	if name == "NotificationSaveInputBody" { // a name of the document too
		return "SaveInputBody"
	}
	return name
}

// NewRegistry knows how the engine's types look in JSON. The engine cannot say it
// itself: it knows nothing of OpenAPI.
func NewRegistry() huma.Registry {
	r := huma.NewMapRegistry("#/components/schemas/", schemaName)
	alias := func(t, as reflect.Type) { r.RegisterTypeAlias(t, as) }
	alias(reflect.TypeFor[engine.Time](), reflect.TypeFor[timeSchema]())
	alias(reflect.TypeFor[engine.Kind](), reflect.TypeFor[kindSchema]())
	alias(reflect.TypeFor[engine.ConnectionRef](), reflect.TypeFor[connectionRefSchema]())
	alias(reflect.TypeFor[engine.RunResult](), reflect.TypeFor[runResult]())
	for _, e := range enumerations {
		alias(e.of, e.as)
	}
	return r
}

type (
	timeSchema          struct{}
	kindSchema          struct{}
	connectionRefSchema struct{}
)

// runResult is engine.RunResult as it writes itself.
type runResult struct {
	engine.RunResult
	Figures *engine.WorkerFigures `json:"figures"`
}

// Schema describes engine.Time: RFC 3339 in UTC with milliseconds, or null.
func (timeSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Nullable: true}
}

// Schema describes engine.Kind, which is written by name.
func (kindSchema) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, k := range engine.Kinds() {
		s.Enum = append(s.Enum, k.String())
	}
	return s
}

// Schema describes engine.ConnectionRef: a saved connection's name, or an inline one.
func (connectionRefSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "The name of a saved connection, or a connection spelled out. Passwords read as ***.",
		OneOf: []*huma.Schema{
			{Type: huma.TypeString},
			{Type: huma.TypeObject, AdditionalProperties: false, Properties: map[string]*huma.Schema{
				"driver": {Type: huma.TypeString}, "dsn": {Type: huma.TypeString},
			}},
		},
	}
}

// Finish makes the schemas true where huma's own rules fall short of what
// encoding/json writes: a nil pointer to a struct, a nil map and a pointer to an
// aliased scalar are null.
func Finish(r huma.Registry) {
	for name, schema := range r.Map() {
		t := r.TypeFromRef("#/components/schemas/" + name)
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		finishStruct(schema, t)
		switch t {
		case reflect.TypeFor[engine.GuardrailState]():
			schema.Properties["name"].Enum = guardrailNames()
		case reflect.TypeFor[runResult]():
			// The row of a run worker has no enrichment of its own.
			status := schema.Properties["enrichment_status"]
			status.Enum = append(status.Enum, "")
		}
		schema.PrecomputeMessages()
	}
}

// guardrailNames are the fields of a template that are limits.
func guardrailNames() []any {
	var names []any
	t := reflect.TypeFor[engine.Guardrails]()
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); strings.HasPrefix(name, "max_") {
			names = append(names, name)
		}
	}
	return names
}

func finishStruct(schema *huma.Schema, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if f.Anonymous && tag == "" {
			if ft := f.Type; ft.Kind() == reflect.Struct {
				finishStruct(schema, ft)
			}
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		property := schema.Properties[name]
		if property != nil && f.Type == reflect.TypeFor[[]engine.Kind]() {
			// A kind is a byte in memory and a name in JSON: a list of them is no base64.
			schema.Properties[name] = &huma.Schema{Type: huma.TypeArray, Items: kindSchema{}.Schema(nil),
				Description: property.Description,
				Nullable:    !strings.Contains(options, "omitempty")}
			continue
		}
		if property == nil || strings.Contains(options, "omitempty") {
			continue
		}
		switch {
		case name == "timestamp" && f.Type == reflect.TypeFor[engine.Time]():
			// When something was seen is always known; only what may not have happened yet is null.
			property.Nullable = false
		case f.Type.Kind() == reflect.Pointer && property.Ref != "":
			schema.Properties[name] = &huma.Schema{OneOf: []*huma.Schema{{Ref: property.Ref}, {Type: "null"}},
				Description: property.Description}
		case f.Type.Kind() == reflect.Map:
			property.Nullable = true
		case f.Type.Kind() == reflect.Pointer && len(property.Enum) > 0 && !property.Nullable:
			property.Nullable = true
			property.Enum = append(append([]any(nil), property.Enum...), nil)
		}
	}
}
