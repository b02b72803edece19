package lspbridge

import (
	"context"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"go.lsp.dev/protocol"
)

// TypeTree is a type with its direct supertypes and subtypes. More distant ones are not requested, because the answer would grow with the
// project.
type TypeTree struct {
	Type       CallItem
	Supertypes []CallItem
	Subtypes   []CallItem
}

// TypeHierarchy returns the types at a position, usually one, with their direct supertypes and subtypes; none when there is no type. Items
// are sent back unchanged (Raw), because servers keep data of their own in them (LSP 3.17, TypeHierarchyItem.data).
func (q questions) TypeHierarchy(ctx context.Context, path string, p Position) ([]TypeTree, error) {
	var out []TypeTree
	err := q.one(ctx, path, func(k *capabilities) bool { return has(k.TypeHierarchy) }, "type hierarchy", func(ctx context.Context, c *client) error {
		var items []lsp.CallItem
		if err := c.call(ctx, protocol.MethodTextDocumentPrepareTypeHierarchy, c.converter().at(path, p), &items); err != nil {
			return err
		}
		for _, item := range items {
			t := TypeTree{Type: c.converter().callItem(item, path, nil)}
			for _, q := range []struct {
				method string
				to     *[]CallItem
			}{{protocol.MethodTypeHierarchySupertypes, &t.Supertypes}, {protocol.MethodTypeHierarchySubtypes, &t.Subtypes}} {
				var list []lsp.CallItem
				if err := c.call(ctx, q.method, map[string]any{"item": item.Raw}, &list); err != nil {
					return err
				}
				for _, i := range list {
					*q.to = append(*q.to, c.converter().callItem(i, path, nil))
				}
			}
			out = append(out, t)
		}
		return nil
	})
	return out, err
}
