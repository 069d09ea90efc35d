package prepare

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/jsonx"
	"github.com/loadstone-db/loadstone/engine/base/schema"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

const paramsField = "workload.params"

// adapterParamsField holds the adapter's parameters.
const adapterParamsField = "target.params"

// parameters checks params, the document's field, against the manifest's JSON
// Schema and returns them with the schema's defaults filled in. Numbers keep
// their digits.
func parameters(m plugin.Manifest, params json.RawMessage, field string) (json.RawMessage, error) {
	doc := map[string]any{}
	if trimmed := bytes.TrimSpace(params); len(trimmed) > 0 && !bytes.Equal(trimmed, []byte("null")) {
		dec := json.NewDecoder(bytes.NewReader(trimmed))
		dec.UseNumber()
		var value any
		if err := dec.Decode(&value); err != nil {
			return nil, engine.InvalidField(field, "is not a JSON document: "+jsonx.Explain(err).Error(), "")
		}
		object, ok := value.(map[string]any)
		if !ok {
			return nil, engine.InvalidField(field, "must be an object", "write the parameters as name: value")
		}
		doc = object
	}
	if len(bytes.TrimSpace(m.Parameters)) == 0 {
		if len(doc) > 0 {
			return nil, engine.InvalidField(field, fmt.Sprintf("the plugin %s takes no parameters", m.Name), "remove them")
		}
		return json.RawMessage("{}"), nil
	}
	compiled, err := schema.Compile(m.Parameters)
	if err != nil {
		return nil, &engine.Error{Code: engine.CodePlugin,
			Message: fmt.Sprintf("The plugin %s describes its parameters by a JSON Schema that cannot be used: %v", m.Name, err),
			Hint:    "the plugin's author has to correct it", Cause: err}
	}
	if fields := compiled.Check(doc, field); len(fields) > 0 {
		return nil, &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("The parameters of the plugin %s cannot be used.", m.Name), Fields: fields}
	}
	compiled.Complete(doc)
	if fields := compiled.Check(doc, field); len(fields) > 0 {
		return nil, &engine.Error{Code: engine.CodePlugin,
			Message: fmt.Sprintf("The defaults of the plugin %s do not meet its own schema.", m.Name), Fields: fields}
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("writing the parameters: %w", err)
	}
	return out, nil
}
