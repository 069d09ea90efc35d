package promapi

import (
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// syntaxTree is an expression in the form in which Prometheus answers one that it has parsed.
func syntaxTree(e parser.Expr) any {
	switch n := e.(type) {
	case *parser.AggregateExpr:
		return map[string]any{
			"type":     "aggregation",
			"op":       n.Op.String(),
			"expr":     syntaxTree(n.Expr),
			"param":    syntaxTree(n.Param),
			"grouping": orNone(n.Grouping),
			"without":  n.Without,
		}
	case *parser.BinaryExpr:
		return map[string]any{"type": "binaryExpr", "op": n.Op.String(), "lhs": syntaxTree(n.LHS), "rhs": syntaxTree(n.RHS),
			"matching": matching(n.VectorMatching), "bool": n.ReturnBool}
	case *parser.Call:
		args := make([]any, len(n.Args))
		for i, a := range n.Args {
			args[i] = syntaxTree(a)
		}
		return map[string]any{"type": "call", "args": args, "func": map[string]any{"name": n.Func.Name,
			"argTypes": n.Func.ArgTypes, "variadic": n.Func.Variadic, "returnType": n.Func.ReturnType}}
	case *parser.MatrixSelector:
		s, _ := n.VectorSelector.(*parser.VectorSelector)
		m := selector(s, "matrixSelector")
		m["range"], m["rangeExpr"] = n.Range.Milliseconds(), nil
		return m
	case *parser.VectorSelector:
		return selector(n, "vectorSelector")
	case *parser.SubqueryExpr:
		return map[string]any{
			"type":       "subquery",
			"expr":       syntaxTree(n.Expr),
			"range":      n.Range.Milliseconds(),
			"rangeExpr":  nil,
			"offset":     n.OriginalOffset.Milliseconds(),
			"offsetExpr": nil,
			"step":       n.Step.Milliseconds(),
			"stepExpr":   nil,
			"timestamp":  n.Timestamp,
			"startOrEnd": itemName(n.StartOrEnd),
		}
	case *parser.NumberLiteral:
		return map[string]any{"type": "numberLiteral", "val": strconv.FormatFloat(n.Val, 'f', -1, 64)}
	case *parser.StringLiteral:
		return map[string]any{"type": "stringLiteral", "val": n.Val}
	case *parser.ParenExpr:
		return map[string]any{"type": "parenExpr", "expr": syntaxTree(n.Expr)}
	case *parser.UnaryExpr:
		return map[string]any{"type": "unaryExpr", "op": n.Op.String(), "expr": syntaxTree(n.Expr)}
	}
	return nil
}

func selector(s *parser.VectorSelector, kind string) map[string]any {
	return map[string]any{"type": kind, "name": s.Name, "offset": s.OriginalOffset.Milliseconds(), "offsetExpr": nil,
		"matchers": matchers(s.LabelMatchers), "timestamp": s.Timestamp, "startOrEnd": itemName(s.StartOrEnd),
		"anchored": s.Anchored, "smoothed": s.Smoothed}
}

func matchers(all []*labels.Matcher) []map[string]string {
	out := make([]map[string]string, len(all))
	for i, m := range all {
		out[i] = map[string]string{"name": m.Name, "value": m.Value, "type": m.Type.String()}
	}
	return out
}

func matching(m *parser.VectorMatching) any {
	if m == nil {
		return nil
	}
	return map[string]any{"card": m.Card.String(), "labels": orNone(m.MatchingLabels), "on": m.On,
		"include":    orNone(m.Include),
		"fillValues": map[string]*float64{"lhs": m.FillValues.LHS, "rhs": m.FillValues.RHS}}
}

func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func itemName(w parser.ItemType) any {
	if w == 0 {
		return nil
	}
	return w.String()
}
