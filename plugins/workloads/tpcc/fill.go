package main

import (
	"errors"
	"math"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
)

// generator is one stream of transactions.
type generator struct {
	params
	constants
	rand *gen.Rand
	// deck holds the transactions still to come of this round; next is the place of the next one.
	deck []uint8
	next int
	// drawn is the transaction whose keying and think time was issued, or none.
	drawn uint8
	// reads: what an UPDATE changed is read after it, as Snowflake wants it.
	reads bool
	lines [15]line
}

const none = numTransactions

// Open starts a stream.
func (tpcc) Open(req sdk.OpenRequest) (sdk.Generator, error) {
	p, err := readParams(req.Params)
	if err != nil {
		return nil, err
	}
	if req.KeySlot < 0 || req.KeySlot >= req.KeySlots {
		return nil, errors.New("key_slot must be below key_slots")
	}
	g := &generator{params: p, constants: newConstants(req.Seed), rand: gen.NewRand(req.Seed, req.KeySlot), drawn: none,
		reads: forSnowflake(req.Tables)}
	for t, n := range p.weights {
		for range n {
			g.deck = append(g.deck, uint8(t))
		}
	}
	g.next = len(g.deck)
	return g, nil
}

// draw takes the next card; an empty deck is shuffled anew (clause 5.2.4.2).
func (g *generator) draw() uint8 {
	if g.next == len(g.deck) {
		for i := len(g.deck) - 1; i > 0; i-- {
			j := g.rand.Int64n(int64(i + 1))
			g.deck[i], g.deck[j] = g.deck[j], g.deck[i]
		}
		g.next = 0
	}
	g.next++
	return g.deck[g.next-1]
}

// The keying times and the means of the think times of clause 5.2.5.7, in µs.
var (
	keying = [numTransactions]int64{18_000_000, 3_000_000, 2_000_000, 2_000_000, 2_000_000}
	think  = [numTransactions]float64{12_000_000, 12_000_000, 10_000_000, 5_000_000, 5_000_000}
)

// Fill writes whole transactions.
func (g *generator) Fill(b *sdk.Batch, max int) error {
	for b.Len() < max {
		if g.drawn == none {
			g.drawn = g.draw()
			if g.terminalTimes {
				wait := -math.Log(1-g.rand.Float64()) * think[g.drawn]
				b.Delay(keying[g.drawn] + int64(min(wait, 10*think[g.drawn])))
				continue
			}
		}
		switch g.drawn {
		case newOrder:
			g.newOrder(b)
		case payment:
			g.payment(b)
		case orderStatus:
			g.orderStatus(b)
		case delivery:
			g.delivery(b)
		default:
			g.stockLevel(b)
		}
		g.drawn = none
	}
	return nil
}

func (g *generator) warehouse() int64 { return 1 + g.rand.Int64n(g.warehouses) }
func (g *generator) district() int64  { return 1 + g.rand.Int64n(districtsPerWarehouse) }
func (g *generator) customerNumber() int64 {
	return nuRand(g.rand, 1023, g.customerC, 1, g.customers)
}

// another is a warehouse that is not home. There must be two.
func (g *generator) another(home int64) int64 {
	w := 1 + g.rand.Int64n(g.warehouses-1)
	if w >= home {
		w++
	}
	return w
}

// line is one item of an order.
type line struct{ item, supply, quantity int64 }

func (g *generator) newOrder(b *sdk.Batch) {
	r := g.rand
	w, d, c := g.warehouse(), g.district(), g.customerNumber()
	count := int(r.Between(5, 15))
	unused := r.Int64n(100) == 0
	allLocal := int64(1)
	for i := range count {
		l := line{item: nuRand(r, 8191, g.itemC, 1, g.items), supply: w, quantity: r.Between(1, 10)}
		if r.Int64n(100) == 0 && g.warehouses > 1 {
			l.supply, allLocal = g.another(w), 0
		}
		// In the order of stock rows, so that orders do not lock them crosswise.
		at := i
		for ; at > 0 && (g.lines[at-1].supply > l.supply || g.lines[at-1].supply == l.supply &&
			g.lines[at-1].item > l.item); at-- {
			g.lines[at] = g.lines[at-1]
		}
		g.lines[at] = l
	}
	if unused {
		g.lines[count-1].item = g.items + 1
	}
	b.Begin()
	b.Op(noWarehouse)
	b.I64(w)
	b.Op(noDistrict)
	b.I64(w)
	b.I64(d)
	if g.reads {
		b.Op(noDistrictRead)
		b.I64(w)
		b.I64(d)
	}
	order := b.Last()
	b.Op(noCustomer)
	b.I64(w)
	b.I64(d)
	b.I64(c)
	b.Op(noOrder)
	b.Ref(order, 0)
	b.I64(d)
	b.I64(w)
	b.I64(c)
	b.I64(int64(count))
	b.I64(allLocal)
	b.Op(noNewOrder)
	b.Ref(order, 0)
	b.I64(d)
	b.I64(w)
	for i := range count {
		l := &g.lines[i]
		b.Op(noItem)
		b.I64(l.item)
		item := b.Last()
		if l.item > g.items {
			// The number is not in use: the order is rolled back (clause 2.4.1.4).
			b.Rollback()
			return
		}
		remote := int64(0)
		if l.supply != w {
			remote = 1
		}
		b.Op(noStock)
		b.I64(l.quantity)
		b.I64(remote)
		b.I64(l.supply)
		b.I64(l.item)
		b.I64(d)
		if g.reads {
			b.Op(noStockRead)
			b.I64(l.supply)
			b.I64(l.item)
			b.I64(d)
		}
		stock := b.Last()
		b.Op(noLine)
		b.Ref(order, 0)
		b.I64(d)
		b.I64(w)
		b.I64(int64(i + 1))
		b.I64(l.item)
		b.I64(l.supply)
		b.I64(l.quantity)
		b.Ref(item, 0)
		b.Ref(stock, 1)
	}
	b.Commit()
}

func (g *generator) payment(b *sdk.Batch) {
	r := g.rand
	w, d := g.warehouse(), g.district()
	cw, cd := w, d
	if r.Int64n(100) < 15 && g.warehouses > 1 {
		cw, cd = g.another(w), g.district()
	}
	byName := r.Int64n(100) < 60
	amount := r.Between(100, 500_000)
	b.Begin()
	b.Op(payWarehouse)
	fixed(b, amount, 2)
	b.I64(w)
	if g.reads {
		b.Op(payWarehouseRead)
		b.I64(w)
	}
	warehouse := b.Last()
	b.Op(payDistrict)
	fixed(b, amount, 2)
	b.I64(w)
	b.I64(d)
	if g.reads {
		b.Op(payDistrictRead)
		b.I64(w)
		b.I64(d)
	}
	district := b.Last()
	var c int64
	var found uint8
	if byName {
		g.byName(b, payByName, cw, cd)
		found = b.Last()
	} else {
		c = g.customerNumber()
	}
	customer := func() {
		if byName {
			b.Ref(found, 0)
		} else {
			b.I64(c)
		}
	}
	b.Op(payCustomer)
	fixed(b, amount, 2)
	b.I64(w)
	b.I64(d)
	b.I64(cw)
	b.I64(cd)
	customer()
	if g.reads {
		b.Op(payCustomerRead)
		b.I64(cw)
		b.I64(cd)
		customer()
	}
	b.Op(payHistory)
	customer()
	b.I64(cd)
	b.I64(cw)
	b.I64(d)
	b.I64(w)
	fixed(b, amount, 2)
	b.Ref(warehouse, 0)
	b.Ref(district, 0)
	b.Commit()
}

func (g *generator) byName(b *sdk.Batch, statement uint16, w, d int64) {
	b.Op(statement)
	b.I64(w)
	b.I64(d)
	lastName(b, nuRand(g.rand, 255, g.lastC, 0, g.names()-1))
}

func (g *generator) orderStatus(b *sdk.Batch) {
	w, d := g.warehouse(), g.district()
	b.Begin()
	if g.rand.Int64n(100) < 60 {
		g.byName(b, osByName, w, d)
	} else {
		b.Op(osByNumber)
		b.I64(w)
		b.I64(d)
		b.I64(g.customerNumber())
	}
	b.Op(osOrder)
	b.I64(w)
	b.I64(d)
	b.Ref(0, 0)
	b.Op(osLines)
	b.I64(w)
	b.I64(d)
	b.Ref(1, 0)
	b.Commit()
}

func (g *generator) delivery(b *sdk.Batch) {
	w, carrier := g.warehouse(), 1+g.rand.Int64n(10)
	b.Begin()
	for d := int64(1); d <= districtsPerWarehouse; d++ {
		if g.reads {
			b.Op(dlLock)
			b.I64(w)
			b.I64(d)
		}
		b.Op(dlOldest)
		b.I64(w)
		b.I64(d)
		oldest := b.Last()
		b.Op(dlNewOrder)
		b.I64(w)
		b.I64(d)
		b.Ref(oldest, 0)
		b.Op(dlOrder)
		b.I64(carrier)
		b.I64(w)
		b.I64(d)
		b.Ref(oldest, 0)
		if g.reads {
			b.Op(dlOrderRead)
			b.I64(w)
			b.I64(d)
			b.Ref(oldest, 0)
		}
		order := b.Last()
		b.Op(dlLines)
		b.I64(w)
		b.I64(d)
		b.Ref(oldest, 0)
		b.Op(dlAmount)
		b.I64(w)
		b.I64(d)
		b.Ref(oldest, 0)
		amount := b.Last()
		b.Op(dlCustomer)
		b.Ref(amount, 0)
		b.I64(w)
		b.I64(d)
		b.Ref(order, 0)
	}
	b.Commit()
}

func (g *generator) stockLevel(b *sdk.Batch) {
	w, d := g.warehouse(), g.district()
	b.Begin()
	b.Op(slDistrict)
	b.I64(w)
	b.I64(d)
	b.Op(slCount)
	b.I64(w)
	b.I64(d)
	b.Ref(0, 0)
	b.I64(g.rand.Between(10, 20))
	b.Commit()
}
