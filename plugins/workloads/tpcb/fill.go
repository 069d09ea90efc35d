package main

import (
	"errors"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// dialect is that in which the statements are written below; those of Snowflake are made of them.
const (
	dialect          = "postgres"
	snowflakeDialect = "snowflake"
)

var (
	delta = sdk.Bind{Name: "delta", Type: sdk.I64}
	aid   = sdk.Bind{Name: "aid", Type: sdk.I64, Column: "aid"}
	tid   = sdk.Bind{Name: "tid", Type: sdk.I64, Column: "tid"}
	bid   = sdk.Bind{Name: "bid", Type: sdk.I64, Column: "bid"}
)

// The statements, as pgbench's scripts have them.
var (
	updateAccount = newStatement(sdk.Statement{ID: "update_account", Kind: sdk.Update, Table: "pgbench_accounts",
		Binds: []sdk.Bind{delta, aid}, Writes: true}, "UPDATE {table} SET abalance = abalance + $1 WHERE aid = $2")
	selectBalance = newStatement(sdk.Statement{ID: "select_balance", Kind: sdk.PointLookup, Table: "pgbench_accounts",
		Binds: []sdk.Bind{aid}, Columns: []string{"abalance"}}, "SELECT abalance FROM {table} WHERE aid = $1")
	updateTeller = newStatement(sdk.Statement{ID: "update_teller", Kind: sdk.Update, Table: "pgbench_tellers",
		Binds: []sdk.Bind{delta, tid}, Writes: true}, "UPDATE {table} SET tbalance = tbalance + $1 WHERE tid = $2")
	updateBranch = newStatement(sdk.Statement{ID: "update_branch", Kind: sdk.Update, Table: "pgbench_branches",
		Binds: []sdk.Bind{delta, bid}, Writes: true}, "UPDATE {table} SET bbalance = bbalance + $1 WHERE bid = $2")
	insertHistory = newStatement(sdk.Statement{ID: "insert_history", Kind: sdk.Insert, Table: "pgbench_history",
		Binds: []sdk.Bind{tid, bid, aid, delta}, Writes: true},
		"INSERT INTO {table} (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)")
)

// newStatement puts the SQL into a statement: Postgres numbers its parameters,
// Snowflake marks them.
func newStatement(s sdk.Statement, sql string) sdk.Statement {
	text, order := sqltext.Positional(sql)
	s.SQL = map[string]string{dialect: sql, snowflakeDialect: text}
	s.BindOrder = map[string][]int{snowflakeDialect: order}
	s.Param = "script"
	s.NoRowsHint = "the tables are not as they were loaded: workload.params.scale has to be theirs, and " +
		"target.prepare.if_exists: recreate loads them anew"
	return s
}

// Statements returns those of the script, in its order.
func (tpcb) Statements(doc *jsondoc.Value, _ []sdk.Table) ([]sdk.Statement, error) {
	p, err := readParams(doc)
	if err != nil {
		return nil, err
	}
	first := updateAccount
	switch p.script {
	case selectOnly:
		return []sdk.Statement{selectBalance}, nil
	case simpleUpdate:
		first.Transaction = "simple_update"
		return []sdk.Statement{first, selectBalance, insertHistory}, nil
	}
	first.Transaction = "tpcb_like"
	return []sdk.Statement{first, selectBalance, updateTeller, updateBranch, insertHistory}, nil
}

// generator is one stream of transactions.
type generator struct {
	params
	rand *gen.Rand
}

// Open starts a stream.
func (tpcb) Open(req sdk.OpenRequest) (sdk.Generator, error) {
	p, err := readParams(req.Params)
	if err != nil {
		return nil, err
	}
	if req.KeySlot < 0 || req.KeySlot >= req.KeySlots {
		return nil, errors.New("key_slot must be below key_slots")
	}
	return &generator{params: p, rand: gen.NewRand(req.Seed, req.KeySlot)}, nil
}

// Fill writes whole transactions.
func (g *generator) Fill(b *sdk.Batch, max int) error {
	for b.Len() < max {
		g.transaction(b)
	}
	return nil
}

// transaction draws what pgbench draws, in its order: account, branch, teller, delta.
func (g *generator) transaction(b *sdk.Batch) {
	account := 1 + g.rand.Int64n(accountsPerScale*g.scale)
	if g.script == selectOnly {
		b.Op(0)
		b.I64(account)
		return
	}
	branch := 1 + g.rand.Int64n(branchesPerScale*g.scale)
	teller := 1 + g.rand.Int64n(tellersPerScale*g.scale)
	amount := g.rand.Int64n(10_001) - 5_000
	b.Begin()
	b.Op(0)
	b.I64(amount)
	b.I64(account)
	b.Op(1)
	b.I64(account)
	history := uint16(2)
	if g.script == tpcbLike {
		b.Op(2)
		b.I64(amount)
		b.I64(teller)
		b.Op(3)
		b.I64(amount)
		b.I64(branch)
		history = 4
	}
	b.Op(history)
	b.I64(teller)
	b.I64(branch)
	b.I64(account)
	b.I64(amount)
	b.Commit()
}
