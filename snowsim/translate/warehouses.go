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
func (p *Parser) onWarehouse(warehouseName, privilege, message string, do func(Warehouses) error) *Plan {
	p.Volatile = true
	if privilege == "CREATE WAREHOUSE" {
		if !p.May(privilege, AccountObject) {
			p.Fail(Insufficient("account", p.Session.Account))
		}
	} else {
		w, ok := p.Account.Host.Warehouses().Get(warehouseName)
		if !ok {
			p.Fail(protocol.CompilationError("002003", "02000", "Warehouse '%s' does not exist or not authorized.",
				Display(warehouseName)))
		}
		o := WarehouseObject(warehouseName)
		if o.Owner = w.Owner; !p.May(privilege, o) {
			p.Fail(Insufficient("warehouse", Display(warehouseName)))
		}
	}
	return &Plan{Type: protocol.DDL, Local: func(context.Context) (*Result, error) {
		if err := do(p.Account.Host.Warehouses()); err != nil {
			return nil, err
		}
		return Status(message), nil
	}}
}

// createWarehouse reads CREATE [INTERACTIVE] WAREHOUSE [IF NOT EXISTS] w [TABLES (…)] [WITH] options.
func (p *Parser) createWarehouse(kind string) *Plan {
	ifNotExists := p.Accept("IF", "NOT", "EXISTS")
	spec := warehouse.Spec{Name: p.Identifier(), Type: kind, Size: "X-Small", MinClusters: 1, MaxClusters: 1,
		ScalingPolicy: warehouse.PolicyStandard,
		AutoSuspend:   10 * time.Minute, AutoResume: true, MaxConcurrency: 8, StatementTimeout: 48 * time.Hour,
		Owner: p.Session.Role}
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
	if _, ok := p.Account.Host.Warehouses().Get(spec.Name); ok && ifNotExists {
		made = p.Done(spec.Name + " already exists, statement succeeded.")
	}
	made.Effect.Warehouse = &spec.Name
	return made
}

// alterWarehouse reads ALTER WAREHOUSE w ….
func (p *Parser) alterWarehouse() *Plan {
	n := p.Identifier()
	const message = "Statement executed successfully."
	switch {
	case p.Accept("SUSPEND"):
		return p.onWarehouse(n, "OPERATE", message, func(w Warehouses) error { return w.Suspend(n) })
	case p.Accept("RESUME"):
		quiet := p.Accept("IF", "SUSPENDED")
		return p.onWarehouse(n, "OPERATE", message, func(w Warehouses) error {
			if state, ok := w.Get(n); ok && quiet && state.Status != warehouse.Suspended {
				return nil
			}
			return w.Resume(n)
		})
	case p.IsAny("ADD", "DROP"):
		adding := p.Next().Text == "ADD"
		p.Expect("TABLES")
		tables := p.tableNames(adding)
		privilege := "MODIFY"
		if o := WarehouseObject(n); !p.May(privilege, o) {
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
	case p.IsAny("ABORT", "RENAME", "UNSET"):
		p.Fail(protocol.NotSimulated("ALTER WAREHOUSE … %s", p.Peek().Text))
	}
	p.Expect("SET")
	change := p.warehouseOptions()
	return p.onWarehouse(n, "MODIFY", message, func(w Warehouses) error {
		return w.Alter(n, func(s *warehouse.Spec) error { change(s); return nil })
	})
}

// tableNames reads the tables of an interactive warehouse.
func (p *Parser) tableNames(check bool) (all []string) {
	p.InParentheses(func() {
		for {
			n := p.Name()
			if check {
				// Also standard and hybrid tables (docs: all types since 2026-09-14).
				n = p.Resolve(n, "SELECT").Name
			}
			all = append(all, n.String())
			if !p.AcceptSymbol(",") {
				return
			}
		}
	})
	return all
}

// warehouseOptions reads the options and returns what they change.
func (p *Parser) warehouseOptions() func(*warehouse.Spec) {
	var changes []func(*warehouse.Spec)
	add := func(change func(*warehouse.Spec)) { changes = append(changes, change) }
	for p.Peek().Kind == Word {
		if p.Accept("WITH") {
			continue
		}
		if p.Is("TABLES") {
			p.Next()
			tables := p.tableNames(true)
			add(func(s *warehouse.Spec) { s.Tables = tables })
			continue
		}
		option := p.Next().Text
		p.ExpectSymbol("=")
		value := p.OptionValue()
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
			p.Fail(protocol.NotSimulated("a warehouse with %s", option))
		default:
			p.Fail(protocol.CompilationError("001003", "42000", "invalid property '%s' for 'WAREHOUSE'", option))
		}
		p.AcceptSymbol(",")
	}
	return func(s *warehouse.Spec) {
		for _, change := range changes {
			change(s)
		}
	}
}

// needsEnterprise refuses a property of a warehouse on Standard edition.
func (p *Parser) needsEnterprise(property, feature string) {
	if p.Account.Contract.Standard {
		p.Fail(protocol.CompilationError("001423", "22023", "invalid property '%s'; feature '%s' not enabled", property, feature))
	}
}

// warehouseOption is one option as a statement gives it.
type warehouseOption struct {
	p           *Parser
	name, value string
}

func (o warehouseOption) invalid() {
	o.p.Fail(protocol.CompilationError("001008", "22023", "invalid value [%s] for parameter '%s'", o.value, o.name))
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

// fallback is the name of a warehouse that is there and not interactive.
func (o warehouseOption) fallback() string {
	name := o.value
	w, ok := o.p.Account.Host.Warehouses().Get(name)
	if !ok {
		name = strings.ToUpper(o.value)
		w, ok = o.p.Account.Host.Warehouses().Get(name)
	}
	if !ok || w.Type == warehouse.TypeInteractive {
		o.p.Fail(protocol.CompilationError("002003", "02000", "Warehouse '%s' does not exist or not authorized.", o.value))
	}
	return name
}
