-- Hunks and changed files as quickfix lists. Each list is added to the stack; `:colder` shows the one before.
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

-- The findings of the last review of each session. Those of the language servers arrive before those of the model.
local reviews = {}

-- Shows the findings of a review as a quickfix list, those of the language servers first. More findings replace the
-- list.
---@param p pillion.ReviewUpdated
function M.findings(p)
  local review = reviews[p.sessionId]
  if not review or review.message ~= p.messageId then
    review = { message = p.messageId, by = {} }
    reviews[p.sessionId] = review
  end
  review.by[p.by] = p.findings
  local items = {}
  for _, by in ipairs({ "servers", "model" }) do
    for _, f in ipairs(review.by[by] or {}) do
      local text = ("%s: %s"):format(f.source, f.message:gsub("%s+", " "))
      local item = { filename = paths.name(f.path), lnum = f.line, end_lnum = f.endLine, col = 1, text = text, type = f.severity:sub(1, 1):upper() }
      items[#items + 1] = item
    end
  end
  local list = { title = ("Pillion review: %d finding%s"):format(#items, #items == 1 and "" or "s"), items = items, context = { pillion = p.sessionId } }
  local mine = review.id and vim.fn.getqflist({ id = review.id, all = 0 }).id == review.id
  if mine then
    list.id = review.id
  end
  vim.fn.setqflist({}, mine and "r" or " ", list)
  review.id = review.id and mine and review.id or vim.fn.getqflist({ id = 0 }).id
  if #items > 0 then
    local win = vim.api.nvim_get_current_win()
    vim.cmd("botright copen") -- the person asked for a review, so the list is shown; the focus does not move
    vim.api.nvim_set_current_win(win)
  end
end

-- Asks the agent to fix the current finding of the list, or the one at the cursor in the quickfix window.
function M.fix()
  local list = vim.fn.getqflist({ idx = 0, items = 0, context = 0 })
  if type(list.context) ~= "table" or not list.context.pillion then
    return require("pillion.log").tell("error", "the quickfix list has no findings of a review; /review lists them, :colder shows an older list")
  end
  local item = list.items[vim.bo.buftype == "quickfix" and vim.fn.line(".") or list.idx]
  if not item then
    return
  end
  local path = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(item.bufnr), ":.")
  local where = item.end_lnum and item.end_lnum > item.lnum and ("%s:%d-%d"):format(path, item.lnum, item.end_lnum) or ("%s:%d"):format(path, item.lnum)
  require("pillion.chat").prompt(("Fix this finding of a review at %s:\n\n%s\n\nCheck first that it is right; if it is not, say why and change nothing."):format(where, item.text))
end

return M
