package snowflake

import (
	"errors"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake/dialect"
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// warehouse is a row of SHOW WAREHOUSES.
type warehouse struct {
	columns []string
	row     *jsondoc.Value
	// parameters are what SHOW PARAMETERS IN WAREHOUSE says beside it, once that was asked.
	parameters sdk.Result
}

// text returns a column, "" when there is none.
func (h warehouse) text(column string) string {
	for i, name := range h.columns {
		if strings.EqualFold(name, column) {
			if v := h.row.At(i); !v.IsNull() {
				if n, ok := v.Int(); ok {
					return strconv.FormatInt(n, 10)
				}
				if v.Bool() {
					return "true"
				}
				return v.Str()
			}
		}
	}
	return ""
}

// known is text without the word null, which SHOW WAREHOUSES has for some things that are not set.
func (h warehouse) known(column string) string {
	if v := h.text(column); !strings.EqualFold(v, "null") {
		return v
	}
	return ""
}

// parameter is a parameter of the warehouse, "" when it is not known.
func (h warehouse) parameter(key string) string {
	for i := range h.parameters.Rows.Len() {
		if strings.EqualFold(field(h.parameters, i, "key"), key) {
			return field(h.parameters, i, "value")
		}
	}
	return ""
}

// interactive reports the type of warehouse that has a limit of 5 s and may have a fallback.
func (h warehouse) interactive() bool {
	return strings.Contains(strings.ToUpper(h.text("type")), "INTERACTIVE")
}

// fallback is the warehouse that executes again what takes too long here: a parameter, which SHOW WAREHOUSES does not
// tell.
func (h warehouse) fallback() string { return strings.Trim(h.parameter("FALLBACK_WAREHOUSE"), `"`) }

// askParameters asks for the warehouse's parameters; ok is false while the host is being asked.
func (h *warehouse) askParameters(req *jsondoc.Value, w *jsondoc.Writer) (ok bool) {
	if h.parameters = sdk.ResultOf(req, "warehouse_parameters"); h.parameters.Asked {
		return true
	}
	sdk.Ask(w, sdk.Query{ID: "warehouse_parameters",
		SQL: "SHOW PARAMETERS IN WAREHOUSE " + dialect.Quoted(h.text("name"))})
	return false
}

func (h warehouse) number(column string) int64 {
	n, _ := strconv.ParseInt(h.text(column), 10, 64)
	return n
}

var currentWarehouse = sdk.Query{ID: "current_warehouse", SQL: "SELECT CURRENT_WAREHOUSE()"}

// findWarehouse asks for the run's warehouse; ok is false while the host is being
// asked, and found is nil when the role sees none of that name.
func findWarehouse(req *jsondoc.Value, w *jsondoc.Writer) (name string, found *warehouse, ok bool, err error) {
	name = strings.Trim(req.Get("warehouse").Str(), `"`)
	if name == "" {
		current := sdk.ResultOf(req, "current_warehouse")
		if !current.Asked {
			sdk.Ask(w, currentWarehouse)
			return "", nil, false, nil
		}
		if current.Err != "" {
			return "", nil, true, errors.New("asking for the session's warehouse: " + current.Err)
		}
		if name = strings.Trim(current.Rows.At(0).At(0).Str(), `"`); name == "" {
			return "", nil, true, nil
		}
	}
	show := sdk.ResultOf(req, "warehouses")
	if !show.Asked {
		sdk.Ask(w, sdk.Query{ID: "warehouses", SQL: "SHOW WAREHOUSES LIKE " + dialect.Pattern(name)})
		return name, nil, false, nil
	}
	if show.Err != "" {
		return name, nil, true, errors.New("reading the warehouse " + name + ": " + show.Err)
	}
	for i := range show.Rows.Len() {
		h := warehouse{columns: show.Columns, row: show.Rows.At(i)}
		// The pattern ignores case; a name that differs in case only is another warehouse.
		if have := h.text("name"); have == name || found == nil && strings.EqualFold(have, name) {
			found = &h
		}
	}
	return name, found, true, nil
}

// poll tells how the warehouse does now.
func (a Adapter) poll(req *jsondoc.Value, w *jsondoc.Writer) error {
	if missesAbility(req, noWarehouses) {
		w.Object().EndObject()
		return nil
	}
	name, h, ok, err := findWarehouse(req, w)
	switch {
	case err != nil || !ok:
		return err
	case name == "":
		return errors.New("the session has no warehouse: name one in target.warehouse or in the connection")
	case h == nil:
		return errors.New("there is no warehouse " + name + " that the role may see: GRANT USAGE, MONITOR ON WAREHOUSE " +
			dialect.Quoted(name) + " TO ROLE …")
	case h.interactive() && !h.askParameters(req, w):
		return nil
	}
	w.Object()
	h.write(w, true)
	w.EndObject()
	return nil
}

// write writes the member warehouse, with the account's own row where that is wanted.
func (h warehouse) write(w *jsondoc.Writer, raw bool) {
	w.Key("warehouse").Object()
	for _, c := range [...]string{"name", "state", "type", "size", "scaling_policy", "generation"} {
		w.Key(c).Str(h.known(c))
	}
	if w.Key("fallback_warehouse"); h.parameters.Err != "" {
		w.Null() // whether there is one is not known, which is not the same as none
	} else {
		w.Str(h.fallback())
	}
	for _, c := range [...]string{"started_clusters", "min_cluster_count", "max_cluster_count", "running", "queued"} {
		w.Key(c)
		if h.text(c) == "" {
			w.Null() // an edition without clusters does not tell them
			continue
		}
		w.Int(h.number(c))
	}
	if raw {
		w.Key("raw").Object()
		for i, c := range h.columns {
			w.Key(c).Value(h.row.At(i))
		}
		w.EndObject()
	}
	w.EndObject()
}
