package prepare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// maxStatements keeps the indexes of the frozen list below the control statements of a batch.
const maxStatements = 65_000

var bindTypes = []engine.ValueType{engine.TypeI64, engine.TypeF64, engine.TypeText, engine.TypeBytes, engine.TypeBool, engine.TypeTimestamp}

// supported refuses kinds of operation that the table type does not have.
func supported(adapter plugin.Info, wanted []plugin.Statement) error {
	kinds := adapter.Manifest.Kinds
	if len(kinds) == 0 {
		return nil
	}
	var refused []string
	for _, s := range wanted {
		if !slices.Contains(kinds, s.Kind) && !slices.Contains(refused, s.Kind.String()) {
			refused = append(refused, s.Kind.String())
		}
	}
	if len(refused) == 0 {
		return nil
	}
	var names []string
	for _, k := range kinds {
		names = append(names, k.String())
	}
	return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("The table type %s does not support %s.", adapter.Name, strings.Join(refused, ", ")),
		Fields: []engine.FieldError{{Field: paramsField, Message: "asks for " + strings.Join(refused, ", "), Hint: fmt.Sprintf("%s supports %s", adapter.Name, strings.Join(names, ", "))}}}
}

// validate checks the list before it is frozen. A violation is the adapter's (or the workload's) fault.
func validate(adapter plugin.Info, wanted []plugin.Statement, list []engine.Statement) error {
	refuse := func(format string, args ...any) error {
		return &engine.Error{Code: engine.CodePlugin, Message: fmt.Sprintf("The statements that the plugin %s wrote cannot be used: ", adapter.Name) + fmt.Sprintf(format, args...),
			Hint: "the plugin's author has to correct it"}
	}
	switch {
	case len(list) == 0:
		return &engine.Error{Code: engine.CodeInvalid, Message: "The workload has no statement to execute.",
			Fields: []engine.FieldError{{Field: paramsField, Message: "leave nothing to do", Hint: "give at least one kind of operation a weight above 0"}}}
	case len(list) > maxStatements:
		return refuse("%d statements are more than the %d allowed", len(list), maxStatements)
	case len(list) != len(wanted):
		return refuse("%d came back for the %d that the workload declared", len(list), len(wanted))
	}
	seen := make(map[string]bool, len(list))
	for i, s := range list {
		switch {
		case s.ID == "":
			return refuse("number %d has no id", i)
		case seen[s.ID]:
			return refuse("the id %q occurs twice", s.ID)
		case s.ID != wanted[i].ID:
			return refuse("%q stands where the workload declared %q", s.ID, wanted[i].ID)
		case s.Kind >= engine.NumKinds:
			return refuse("%q has an unknown kind", s.ID)
		case s.Kind != wanted[i].Kind:
			return refuse("%q became %s, the workload declared %s", s.ID, s.Kind, wanted[i].Kind)
		case strings.TrimSpace(s.SQL) == "":
			return refuse("%q has no SQL", s.ID)
		}
		seen[s.ID] = true
		for _, b := range s.Binds {
			if !slices.Contains(bindTypes, b.Type) {
				return refuse("%q binds %q with the unknown type %q", s.ID, b.Name, b.Type)
			}
		}
		for _, at := range s.BindOrder {
			if at < 0 || at >= len(s.Binds) {
				return refuse("%q orders a bind %d of %d", s.ID, at, len(s.Binds))
			}
		}
	}
	return nil
}
