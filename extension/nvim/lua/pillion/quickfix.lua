-- Hunks and touched files as quickfix lists. A list is added; `:colder` is the one of before.
local paths = require("pillion.paths")

local M = {}

---@param review pillion.Review
---@param quiet? boolean do not open the window
function M.hunks(review, quiet)
  local view = require("pillion.review_view")
  local items = {}
  for _, h in ipairs(review.hunks) do
    if not h.decision then
      local row = view.row(h)
      items[#items + 1] = {
        filename = h.file.kind ~= "create" and paths.name(h.file.path) or nil,
        bufnr = h.file.kind == "create" and h.file.buf or nil,
        lnum = row and row + 1 or math.max(h.old_start, 1),
        col = 1,
        text = ("%s  -%d +%d  %s"):format(h.file.kind == "edit" and "" or h.file.kind .. " " .. paths.short(h.file.path), #h.old, #h.new, vim.trim(h.new[1] or h.old[1] or "")),
      }
    end
  end
  vim.fn.setqflist({}, " ", { title = "Pillion: " .. review:headline(), items = items })
  if not quiet then
    vim.cmd("botright copen")
  end
end

-- Files that a turn changed.
---@param files {path: string, kind: string, hunks: table[], line?: integer}[]
---@param quiet? boolean
function M.files(files, quiet)
  local items = {}
  for _, f in ipairs(files) do
    items[#items + 1] = { filename = paths.name(f.path), lnum = f.line or 1, col = 1, text = ("%s, %d hunk%s"):format(f.kind, #f.hunks, #f.hunks == 1 and "" or "s") }
  end
  vim.fn.setqflist({}, " ", { title = "Pillion: changed files", items = items })
  if not quiet then
    vim.cmd("botright copen")
  end
end

return M
