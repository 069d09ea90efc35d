package translate

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// onWarehouse is a plan that changes a warehouse.
func (p *parser) onWarehouse(warehouseName, privilege, message string, do func(Warehouses) error) *Plan {
	p.volatile = true
	if privilege == "CREATE WAREHOUSE" {
		if !p.hasPrivilege(privilege, accountObject) {
			p.fail(insufficient("account", p.session.Account))
		}
	} else {
		w, ok := p.account.host.Warehouses().Get(warehouseName)
		if !ok {
			p.fail(protocol.CompilationError("002003", "02000", "Warehouse '%s' does not exist or not authorized.",
				displayName(warehouseName)))
		}
		o := warehouseObject(warehouseName)
		if o.owner = w.Owner; !p.hasPrivilege(privilege, o) {
			p.fail(insufficient("warehouse", displayName(warehouseName)))
		}
	}
	return &Plan{Type: protocol.DDL, Local: func(context.Context) (*Result, error) {
		if err := do(p.account.host.Warehouses()); err != nil {
			return nil, err
		}
		return Status(message), nil
	}}
}

// createWarehouse reads CREATE [INTERACTIVE] WAREHOUSE [IF NOT EXISTS] w [TABLES (…)] [WITH] options.
func (p *parser) createWarehouse(kind string) *Plan {
	ifNotExists := p.accept("IF", "NOT", "EXISTS")
	spec := warehouse.Spec{Name: p.identifier(), Type: kind, Size: "X-Small", MinClusters: 1, MaxClusters: 1,
		ScalingPolicy: warehouse.PolicyStandard,
		AutoSuspend:   10 * time.Minute, AutoResume: true, MaxConcurrency: 8, StatementTimeout: 48 * time.Hour,
		Owner: p.session.Role}
	if kind == warehouse.TypeInteractive {
		// An interactive warehouse is created suspended, does not suspend itself before an
		// hour, and ends statements after five seconds.
		spec.Suspended, spec.AutoSuspend, spec.StatementTimeout = true, time.Hour, 5*time.Second
	}
	change := p.warehouseOptions()
	change(&spec)
	made := p.onWarehouse(spec.Name, "CREATE WAREHOUSE", "Warehouse "+spec.Name+" successfully created.",
		func(w Warehouses) error {
			if _, ok := w.Get(spec.Name); ok {
				return protocol.CompilationError("002002", "42710", "Object '%s' already exists.", spec.Name)
			}
			return w.Create(spec)
		})
	if _, ok := p.account.host.Warehouses().Get(spec.Name); ok && ifNotExists {
		made = p.statusPlan(spec.Name + " already exists, statement succeeded.")
	}
	made.Effect.Warehouse = &spec.Name
	return made
}

// alterWarehouse reads ALTER WAREHOUSE w ….
func (p *parser) alterWarehouse() *Plan {
	n := p.identifier()
	const message = "Statement executed successfully."
	switch {
	case p.accept("SUSPEND"):
		return p.onWarehouse(n, "OPERATE", message, func(w Warehouses) error { return w.Suspend(n) })
	case p.accept("RESUME"):
		quiet := p.accept("IF", "SUSPENDED")
		return p.onWarehouse(n, "OPERATE", message, func(w Warehouses) error {
			if state, ok := w.Get(n); ok && quiet && state.Status != warehouse.Suspended {
				return nil
			}
			return w.Resume(n)
		})
	case p.isAny("ADD", "DROP"):
		adding := p.next().text == "ADD"
		p.expect("TABLES")
		tables := p.tableNames(adding)
		privilege := "MODIFY"
		if o := warehouseObject(n); !p.hasPrivilege(privilege, o) {
			privilege = "MANAGE ATTACHED TABLES"
		}
		return p.onWarehouse(n, privilege, message, func(w Warehouses) error {
			return w.Alter(n, func(s *warehouse.Spec) error {
				if s.Type != warehouse.TypeInteractive {
					return protocol.CompilationError("001008", "22023", "only an interactive warehouse holds tables")
				}
				s.Tables = slices.DeleteFunc(slices.Clone(s.Tables), func(t string) bool { return slices.Contains(tables, t) })
				if adding {
					s.Tables = append(s.Tables, tables...)
				}
				return nil
			})
		})
	case p.isAny("ABORT", "RENAME", "UNSET"):
		p.fail(protocol.NotSimulated("ALTER WAREHOUSE … %s", p.peek().text))
	}
	p.expect("SET")
	change := p.warehouseOptions()
	return p.onWarehouse(n, "MODIFY", message, func(w Warehouses) error {
		return w.Alter(n, func(s *warehouse.Spec) error { change(s); return nil })
	})
}

// tableNames reads the tables of an interactive warehouse.
func (p *parser) tableNames(check bool) (all []string) {
	p.inParentheses(func() {
		for {
			n := p.name()
			if check {
				// Also standard and hybrid tables (docs: all types since 2026-09-14).
				n = p.resolve(n, "SELECT").name
			}
			all = append(all, n.String())
			if !p.acceptSymbol(",") {
				return
			}
		}
	})
	return all
}

// warehouseOptions reads the options and returns what they change.
func (p *parser) warehouseOptions() func(*warehouse.Spec) {
	var changes []func(*warehouse.Spec)
	add := func(change func(*warehouse.Spec)) { changes = append(changes, change) }
	for p.peek().kind == tokenWord {
		if p.accept("WITH") {
			continue
		}
		if p.is("TABLES") {
			p.next()
			tables := p.tableNames(true)
			add(func(s *warehouse.Spec) { s.Tables = tables })
			continue
		}
		option := p.next().text
		p.expectSymbol("=")
		value := p.optionValue()
		o := warehouseOption{p, option, value}
		switch option {
		case "WAREHOUSE_SIZE":
			size, err := warehouse.ParseSize(value)
			if err != nil {
				o.invalid()
			}
			add(func(s *warehouse.Spec) { s.Size = size })
		case "MAX_CLUSTER_COUNT":
			n := o.count()
			if n > 1 {
				p.needsEnterprise(option, "Multi-cluster Warehouses")
			}
			add(func(s *warehouse.Spec) { s.MaxClusters = n })
		case "MIN_CLUSTER_COUNT":
			n := o.count()
			if n > 1 {
				p.needsEnterprise(option, "Multi-cluster Warehouses")
			}
			add(func(s *warehouse.Spec) { s.MinClusters = n; s.MaxClusters = max(n, s.MaxClusters) })
		case "SCALING_POLICY":
			p.needsEnterprise(option, "Multi-cluster Warehouses")
			policy := strings.ToUpper(value)
			if policy != warehouse.PolicyStandard && policy != warehouse.PolicyEconomy {
				o.invalid()
			}
			add(func(s *warehouse.Spec) { s.ScalingPolicy = policy })
		case "AUTO_SUSPEND":
			n := o.count()
			add(func(s *warehouse.Spec) { s.AutoSuspend = time.Duration(n) * time.Second })
		case "AUTO_RESUME":
			on := o.flag()
			add(func(s *warehouse.Spec) { s.AutoResume = on })
		case "INITIALLY_SUSPENDED":
			on := o.flag()
			add(func(s *warehouse.Spec) { s.Suspended = on })
		case "MAX_CONCURRENCY_LEVEL":
			n := o.count()
			if n == 0 {
				o.invalid()
			}
			add(func(s *warehouse.Spec) { s.MaxConcurrency = n })
		case "STATEMENT_QUEUED_TIMEOUT_IN_SECONDS":
			n := o.count()
			add(func(s *warehouse.Spec) { s.QueuedTimeout = time.Duration(n) * time.Second })
		case "STATEMENT_TIMEOUT_IN_SECONDS":
			n := o.count()
			add(func(s *warehouse.Spec) { s.StatementTimeout = time.Duration(n) * time.Second })
		case "ENABLE_QUERY_ACCELERATION", "QUERY_ACCELERATION_MAX_SCALE_FACTOR":
			p.needsEnterprise(option, "Query Acceleration Service")
		case "GENERATION":
			if value != "1" && value != "2" {
				o.invalid()
			}
			add(func(s *warehouse.Spec) { s.Generation = value })
		case "FALLBACK_WAREHOUSE":
			fallback := o.fallback()
			add(func(s *warehouse.Spec) { s.Fallback = fallback })
		case "COMMENT", "RESOURCE_CONSTRAINT", "RESOURCE_MONITOR", "WAIT_FOR_COMPLETION", "WAREHOUSE_TYPE":
			p.fail(protocol.NotSimulated("a warehouse with %s", option))
		default:
			p.fail(protocol.CompilationError("001003", "42000", "invalid property '%s' for 'WAREHOUSE'", option))
		}
		p.acceptSymbol(",")
	}
	return func(s *warehouse.Spec) {
		for _, change := range changes {
			change(s)
		}
	}
}

// needsEnterprise refuses a property of a warehouse on Standard edition.
func (p *parser) needsEnterprise(property, feature string) {
	if p.account.contract.Standard {
		p.fail(
			protocol.CompilationError("001423", "22023", "invalid property '%s'; feature '%s' not enabled", property, feature),
		)
	}
}

// warehouseOption is one option of a statement.
type warehouseOption struct {
	p           *parser
	name, value string
}

func (o warehouseOption) invalid() {
	o.p.fail(protocol.CompilationError("001008", "22023", "invalid value [%s] for parameter '%s'", o.value, o.name))
}

// count is a number of 0 and more; NULL is 0.
func (o warehouseOption) count() int {
	if strings.EqualFold(o.value, "NULL") {
		return 0
	}
	n, err := strconv.Atoi(o.value)
	if err != nil || n < 0 || n > math.MaxInt32 {
		o.invalid()
	}
	return n
}

func (o warehouseOption) flag() bool {
	if !strings.EqualFold(o.value, "TRUE") && !strings.EqualFold(o.value, "FALSE") {
		o.invalid()
	}
	return strings.EqualFold(o.value, "TRUE")
}

// fallback is the name of an existing warehouse that is not interactive.
func (o warehouseOption) fallback() string {
	name := o.value
	w, ok := o.p.account.host.Warehouses().Get(name)
	if !ok {
		name = strings.ToUpper(o.value)
		w, ok = o.p.account.host.Warehouses().Get(name)
	}
	if !ok || w.Type == warehouse.TypeInteractive {
		o.p.fail(protocol.CompilationError("002003", "02000", "Warehouse '%s' does not exist or not authorized.", o.value))
	}
	return name
}
