package snowflake

import (
	"slices"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake/dialect"
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// described says what a warehouse is: its generation decides its speed and its price.
func (h warehouse) described() string {
	parts := []string{}
	if size := strings.ToLower(h.known("size")); size != "" {
		parts = append(parts, size)
	}
	kind := strings.ToLower(h.text("type"))
	if g := h.known("generation"); g != "" && kind == "standard" {
		kind += " of generation " + g
	}
	text := "The warehouse " + h.text("name") + " is " +
		strings.Join(append(parts, kind, strings.ToLower(h.text("state"))), ", ")
	if strings.EqualFold(kind, "adaptive") {
		text += "; it is billed by what its queries use"
	}
	return text
}

// checkInteractive says what an interactive warehouse means for the run. Tables that it
// does not hold are added to it for the run, and taken away again: a cold table says
// nothing of what it can do.
func (a Adapter) checkInteractive(f findings, req *jsondoc.Value, h warehouse, s *account, o options,
	list []subject) (attach, detach []string) {
	name := h.text("name")
	prepare, recreate := req.Get("prepare").Bool(), req.Get("recreate").Bool()
	makes := prepare && (recreate || slices.ContainsFunc(list, func(t subject) bool { return !t.exists }))
	if makes && o.loadWarehouse == "" &&
		a.tableType != Interactive { // the adapter of interactive tables refuses it by itself
		f.add("load_warehouse", "failed",
			"The warehouse "+name+" is interactive: it makes no table, and the run's is to be made.",
			"name a standard warehouse in target.params.load_warehouse, which makes and fills it",
			"target.params.load_warehouse")
	}
	var writes []string
	for i := range list {
		for _, right := range list[i].rights {
			if right != "SELECT" && right != "REFERENCES" && !slices.Contains(writes, right) {
				writes = append(writes, right)
			}
		}
	}
	if len(writes) > 0 {
		f.add("warehouse_type", "warning",
			"The warehouse "+name+" is interactive, which is made for reading, and the run's operations write ("+listed(writes)+
				"): it may refuse them.",
			"name a standard warehouse in target.warehouse, or let the workload only read", "target.warehouse")
	} else {
		a.checkKind(f, name)
	}
	if h.parameters.Err != "" {
		f.add("fallback_warehouse", "warning", "Whether the interactive warehouse "+name+
			" has a fallback warehouse is not known: "+h.parameters.Err+
			". With one, what takes longer than 5 s is measured there.",
			"see that the role may execute SHOW PARAMETERS IN WAREHOUSE "+dialect.Quoted(name), "target.warehouse")
	}
	if fallback := h.fallback(); fallback != "" {
		f.add("fallback_warehouse", "warning", "What takes longer than 5 s on the interactive warehouse "+name+
			" is executed again on its fallback warehouse "+fallback+
			", without a word to the client: such a run measures two warehouses, and is DEGRADED.",
			"ALTER WAREHOUSE "+dialect.Quoted(name)+" UNSET FALLBACK_WAREHOUSE, or judge only runs in which nothing took 5 s",
			"target.warehouse")
	}
	if rest := h.number("auto_suspend"); rest > 0 {
		f.add("auto_suspend", "ok", "The warehouse "+name+" suspends itself after "+strconv.FormatInt(rest/60, 10)+
			" min without a query; each start of an interactive warehouse is billed for an hour at least.", "", "")
	}
	grants := sdk.ResultOf(req, "warehouse_grants")
	const attached, modify = "MANAGE ATTACHED TABLES", "MODIFY"
	may := s.role == "" || !s.isMissing(grants, attached) || !s.isMissing(grants, modify)
	missing := h.notAttached(list)
	if !may && (makes || len(missing) > 0) {
		f.add("privileges", "warning", "The role "+s.role+" is granted neither "+attached+" nor "+modify+
			" of the interactive warehouse "+name+": no table can be added to it.",
			grantOn(attached, "WAREHOUSE", dialect.Quoted(name), s.role), "target.warehouse")
		return nil, nil
	}
	if recreate || len(missing) == 0 {
		return nil, nil
	}
	f.add("attached_tables", "ok", "The warehouse "+name+" does not hold "+listed(missing)+" yet. The run adds "+
		pronoun(missing)+" to it, and takes "+pronoun(missing)+" away when it is over.", "", "")
	tables := " TABLES (" + strings.Join(missing, ", ") + ")"
	return []string{"ALTER WAREHOUSE " + dialect.Quoted(name) + " ADD" + tables},
		[]string{"ALTER WAREHOUSE " + dialect.Quoted(name) + " DROP" + tables}
}

// checkKind says how tables of the adapter's type do on an interactive warehouse.
// It queries all of them since 2026-09-14 (Snowflake's page on interactive analytics).
func (a Adapter) checkKind(f findings, name string) {
	switch a.tableType {
	case Standard:
		f.add("warehouse_type", "ok",
			"The warehouse "+name+" is interactive, and queries standard tables too; a statement of more than 5 s is ended.", "",
			"")
	case Hybrid:
		f.add("warehouse_type", "warning",
			"The warehouse "+name+" is interactive: it queries hybrid tables only so that they can be joined with others, "+
				"and not as fast as it could.",
			"name a standard warehouse in target.warehouse, unless this is what is to be measured", "target.warehouse")
	case Interactive:
	}
}

// notAttached are the tables of the run that are there and not among those that the
// warehouse holds, as far as SHOW WAREHOUSES tells.
func (h warehouse) notAttached(list []subject) (missing []string) {
	if !slices.ContainsFunc(h.columns, func(c string) bool { return strings.EqualFold(c, "tables") }) {
		return nil
	}
	var held []string
	for one := range strings.SplitSeq(h.known("tables"), ",") {
		held = append(held, strings.ReplaceAll(strings.Trim(strings.TrimSpace(one), "[]"), `"`, ""))
	}
	for i := range list {
		t := &list[i]
		plain := t.name.Database.Name() + "." + t.name.Schema.Name() + "." + t.name.Table.Name()
		if t.exists && t.kind == "TABLE" && !slices.Contains(held, plain) && !slices.Contains(missing, t.name.SQL()) {
			missing = append(missing, t.name.SQL())
		}
	}
	return missing
}
