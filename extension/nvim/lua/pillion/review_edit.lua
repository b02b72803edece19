-- Edits a proposal before the decision: one hunk in a split, or the whole file side by side in diff mode. Writing the
-- buffer decides; closing it leaves the hunks undecided.
local compat = require("pillion.compat")
local go = require("pillion.review_go")
local log = require("pillion.log")
local map = require("pillion.review_keys")
local view = require("pillion.review_view")

---@class pillion.Pane a buffer of Pillion that shows a proposal
---@field review pillion.Review
---@field file? pillion.ReviewFile of a side-by-side pane
---@field places? pillion.Place[] of a side-by-side pane
---@field close fun()

---@class pillion.Place where a hunk is in a side-by-side pane
---@field hunk pillion.ReviewHunk
---@field first integer extmark at its first line; it stays when lines are inserted there
---@field last integer extmark after its last line

local M = {}

---@type table<integer, pillion.Pane> by buffer
local open = {}
local ns = vim.api.nvim_create_namespace("pillion_review_edit")
local signs = vim.api.nvim_create_namespace("pillion_review_edit_signs")

-- Replaces a buffer's lines without an undo step, so that `u` never removes text that the person did not type.
local function fill(buf, lines)
  local levels = vim.bo[buf].undolevels
  vim.bo[buf].undolevels = -1
  -- `U` restores the line that was changed last. Insert and delete a line, so that `U` has nothing to restore.
  vim.api.nvim_buf_set_lines(buf, 0, 0, false, lines)
  if #lines > 0 then
    vim.api.nvim_buf_set_lines(buf, #lines, -1, false, {})
  end
  vim.bo[buf].undolevels = levels
  vim.bo[buf].modified = false
end
M.fill = fill

local function scratch(review, name, lines, filetype, on_write, on_close)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].buftype = "acwrite"
  vim.bo[buf].bufhidden = "wipe"
  vim.bo[buf].swapfile = false
  pcall(vim.api.nvim_buf_set_name, buf, "pillion://" .. name .. "/" .. buf)
  fill(buf, lines)
  vim.bo[buf].filetype = filetype
  vim.b[buf].pillion_proposal = true
  open[buf] = {
    review = review,
    close = function()
      open[buf] = nil
      if on_close then
        on_close()
      end
      pcall(vim.api.nvim_buf_delete, buf, { force = true })
    end,
  }
  vim.api.nvim_create_autocmd("BufWriteCmd", {
    buffer = buf,
    callback = function()
      vim.bo[buf].modified = false
      vim.schedule(function()
        if open[buf] then
          on_write(vim.api.nvim_buf_get_lines(buf, 0, -1, false))
        end
      end)
    end,
  })
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buf,
    callback = function()
      if open[buf] then
        open[buf] = nil
        if on_close then
          vim.schedule(on_close)
        end
      end
    end,
  })
  return buf
end

-- Edits one hunk's new lines in a split below. `:w` decides the hunk with them.
---@param review pillion.Review
---@param hunk pillion.ReviewHunk
function M.hunk(review, hunk)
  if hunk.file.kind == "create" then
    go.to(review, hunk)
    return log.tell("info", "this is a new file: change it here, then accept it")
  elseif hunk.file.kind == "delete" then
    return log.tell("info", "the file would be deleted; accept or reject the deletion")
  end
  local filetype = hunk.file.buf and vim.bo[hunk.file.buf].filetype or ""
  local buf
  buf = scratch(review, "edit", hunk.new_lines or hunk.new, filetype, function(lines)
    if #lines == 1 and lines[1] == "" then
      lines = {}
    end
    open[buf].close()
    if not review.closed then
      review:decide_text(hunk, lines)
      go.onward(review, hunk)
    end
  end)
  vim.cmd(("belowright %dsplit"):format(math.max(5, math.min(#hunk.new + 2, 15))))
  vim.api.nvim_win_set_buf(0, buf)
  vim.wo.winfixheight = true
  vim.api.nvim_echo({ { "Change the proposal; :w decides, :q leaves the hunk undecided", "PillionHint" } }, false, {})
end

-- Returns the lines of a hunk in the proposal: its new lines, or the decided ones.
local function proposed(hunk)
  if hunk.decision == "reject" then
    return hunk.old
  end
  return hunk.decision == "edit" and hunk.new_lines or hunk.new
end

-- Returns the whole proposed file, and the rows of each hunk in it (from 0, end excluded).
local function proposal(file)
  local lines = vim.api.nvim_buf_get_lines(file.buf, 0, -1, false)
  local rows = {}
  for _, h in ipairs(file.hunks) do
    rows[#rows + 1] = { hunk = h, row = view.row(h) or 0 }
  end
  table.sort(rows, function(a, b)
    return a.row < b.row
  end)
  local out, at, places = {}, 1, {}
  for _, x in ipairs(rows) do
    while at <= x.row do
      out[#out + 1] = lines[at]
      at = at + 1
    end
    local first = #out
    vim.list_extend(out, proposed(x.hunk))
    at = at + #x.hunk.old
    places[#places + 1] = { hunk = x.hunk, first = first, last = #out }
  end
  while at <= #lines do
    out[#out + 1] = lines[at]
    at = at + 1
  end
  return out, places
end

-- Returns the present rows of a hunk in its pane, from 0, end excluded.
local function rows_of(buf, place)
  local first = vim.api.nvim_buf_get_extmark_by_id(buf, ns, place.first, {})[1]
  local last = place.tail and vim.api.nvim_buf_line_count(buf) or vim.api.nvim_buf_get_extmark_by_id(buf, ns, place.last, {})[1]
  return first, math.max(first, last)
end

-- The side-by-side pane of a file.
local function pane_of(file)
  for buf, pane in pairs(open) do
    if pane.file == file then
      return buf, pane
    end
  end
end

-- Returns the side-by-side pane with this buffer.
---@param buf integer
---@return pillion.Pane?
function M.pane(buf)
  return open[buf] and open[buf].file and open[buf] or nil
end

-- Returns the open hunk at or nearest to the cursor of a pane; with `direction` the next (1) or previous (-1) open
-- one.
---@param buf integer
---@param direction? integer
---@return pillion.ReviewHunk?
function M.hunk_at(buf, direction)
  local pane = M.pane(buf)
  local cursor = vim.api.nvim_win_get_cursor(0)[1] - 1
  local list = {}
  for _, p in ipairs(pane and pane.places or {}) do
    if not p.hunk.decision then
      local first, last = rows_of(buf, p)
      list[#list + 1] = { hunk = p.hunk, first = first, last = math.max(first, last - 1) }
    end
  end
  if direction then
    for i = direction > 0 and 1 or #list, direction > 0 and #list or 1, direction do
      if (list[i].first - cursor) * direction > 0 then
        return list[i].hunk
      end
    end
    return nil
  end
  local best, least
  for _, x in ipairs(list) do
    local d = cursor < x.first and x.first - cursor or math.max(0, cursor - x.last)
    if not least or d < least then
      best, least = x.hunk, d
    end
  end
  return best
end

-- Moves the cursor of a pane's window to a hunk. Returns false if no pane has the hunk.
---@param hunk pillion.ReviewHunk
---@return boolean
function M.go_to(hunk)
  local buf, pane = pane_of(hunk.file)
  local win = buf and vim.fn.win_findbuf(buf)[1]
  if not win then
    return false
  end
  for _, p in ipairs(pane.places) do
    if p.hunk == hunk then
      local row = rows_of(buf, p)
      vim.api.nvim_set_current_win(win)
      vim.api.nvim_win_set_cursor(win, { math.min(row + 1, vim.api.nvim_buf_line_count(buf)), 0 })
      vim.cmd("normal! zv")
      return true
    end
  end
  return false
end

-- Returns the lines of a hunk in its pane; nil if it is in no pane.
---@param hunk pillion.ReviewHunk
---@return string[]?
function M.text(hunk)
  local buf, pane = pane_of(hunk.file)
  for _, p in ipairs(pane and pane.places or {}) do
    if p.hunk == hunk then
      local first, last = rows_of(buf, p)
      return vim.api.nvim_buf_get_lines(buf, first, last, false)
    end
  end
end

-- Shows the header of a pane: size, decisions so far and verdict, as above the hunks in the file. It uses the winbar.
-- Neovim 0.7 has none; there the chat shows the same text.
---@param buf integer
---@param review pillion.Review
function M.head(buf, review)
  if vim.fn.exists("+winbar") == 0 then
    return
  end
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    vim.wo[win].winbar = "%#PillionHead# " .. review:headline():gsub("%%", "%%%%") .. " %*"
  end
end

-- Shows the decisions in a pane: a rejected hunk has its old lines again, and each decided hunk has a label.
---@param review pillion.Review
function M.refresh(review)
  for buf, pane in pairs(open) do
    if pane.review == review and pane.file and compat.loaded(buf) then
      vim.api.nvim_buf_clear_namespace(buf, signs, 0, -1)
      local modified = vim.bo[buf].modified
      for _, p in ipairs(pane.places) do
        local h = p.hunk
        local first, last = rows_of(buf, p)
        local text = vim.api.nvim_buf_get_lines(buf, first, last, false)
        local want = h.decision and proposed(h) or h.reopened and h.new or text
        h.reopened = nil
        if not vim.deep_equal(text, want) then
          vim.api.nvim_buf_set_lines(buf, first, last, false, want)
          last = first + #want
          vim.api.nvim_buf_set_extmark(buf, ns, math.min(first, math.max(vim.api.nvim_buf_line_count(buf) - 1, 0)), 0, { id = p.first, right_gravity = false })
          vim.api.nvim_buf_set_extmark(buf, ns, math.min(last, math.max(vim.api.nvim_buf_line_count(buf) - 1, 0)), 0, { id = p.last })
        end
        local count = vim.api.nvim_buf_line_count(buf)
        local words, group = view.decision(h)
        vim.api.nvim_buf_set_extmark(buf, signs, math.min(first, count - 1), 0, {
          sign_text = h.decision == "reject" and "✗" or h.decision and "✓" or "+",
          sign_hl_group = group,
          virt_text = { { "  " .. words, h.decision and group or "PillionHint" } },
          virt_text_pos = "eol",
        })
      end
      vim.bo[buf].modified = modified
      M.head(buf, review)
    end
  end
end

-- Decides every hunk of a pane by its text there.
local function decide_by_text(buf, lines)
  local pane = open[buf]
  local review = pane.review
  local now = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  local chosen, outside, at, was, from = {}, {}, 0, {}, 0
  for _, p in ipairs(pane.places) do
    local first, last = rows_of(buf, p)
    vim.list_extend(outside, { unpack(now, at + 1, first) })
    vim.list_extend(was, { unpack(lines, from + 1, p.from) })
    at, from = last, p.to
    chosen[#chosen + 1] = { p.hunk, { unpack(now, first + 1, last) } }
  end
  vim.list_extend(outside, { unpack(now, at + 1) })
  vim.list_extend(was, { unpack(lines, from + 1) })
  pane.close()
  if review.closed then
    return
  end
  if not vim.deep_equal(was, outside) then
    log.tell("warn", "lines outside the hunks were changed and were not used; change them in the file itself")
  end
  local final
  for _, c in ipairs(chosen) do
    final = c[1]
    review:decide_text(c[1], c[2])
  end
  if final then
    go.onward(review, final)
  end
end

-- Shows the file and the proposal side by side. All of the proposal can be edited. The keys decide hunk by hunk; `:w`
-- decides all hunks by their text.
---@param review pillion.Review
---@param file pillion.ReviewFile
function M.split(review, file)
  if file.kind == "create" or file.kind == "delete" then
    return log.tell("info", "there is only one side: the file is " .. (file.kind == "create" and "new" or "deleted"))
  end
  local shown = pane_of(file)
  local shown_in = shown and vim.fn.win_findbuf(shown)[1]
  if shown_in then
    return vim.api.nvim_set_current_win(shown_in)
  end
  if not view.attach(file, true) then
    return
  end
  for _, h in ipairs(file.hunks) do
    if not h.decision then
      go.to(review, h)
      break
    end
  end
  local base = vim.api.nvim_get_current_win()
  local cursor = go.here(review)
  local lines, places = proposal(file)
  local buf
  -- The pane has a winbar for its header, so the file's window gets one too: otherwise the lines would not be level.
  local bar = vim.fn.exists("+winbar") == 1 and vim.wo[base].winbar or nil
  local function finish()
    file.side_by_side = nil
    if vim.api.nvim_win_is_valid(base) then
      if bar then
        vim.wo[base].winbar = bar
      end
      vim.api.nvim_win_call(base, function()
        vim.cmd("diffoff")
      end)
    end
    if not review.closed then
      view.attach(file)
      view.refresh(review)
    end
  end
  buf = scratch(review, "proposal", lines, vim.bo[file.buf].filetype, function()
    decide_by_text(buf, lines)
  end, finish)
  local count = math.max(#lines - 1, 0)
  local pane = open[buf]
  pane.file, pane.places = file, {}
  for _, p in ipairs(places) do
    pane.places[#pane.places + 1] = {
      hunk = p.hunk,
      from = p.first,
      to = p.last,
      tail = p.last >= #lines,
      first = vim.api.nvim_buf_set_extmark(buf, ns, math.min(p.first, count), 0, { right_gravity = false }),
      last = vim.api.nvim_buf_set_extmark(buf, ns, math.min(p.last, count), 0, {}),
    }
  end
  for _, h in ipairs(file.hunks) do
    view.clear(h)
  end
  file.side_by_side = true
  view.refresh(review)
  vim.cmd("diffthis")
  if bar then
    vim.wo[base].winbar = "%#PillionHint# the file as it is %*"
  end
  vim.cmd("rightbelow vsplit")
  vim.api.nvim_win_set_buf(0, buf)
  vim.cmd("diffthis")
  map.add(buf, review)
  local typed = 0
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI" }, {
    buffer = buf,
    callback = function() -- check the edited text when the person pauses
      typed = typed + 1
      local now = typed
      vim.defer_fn(function()
        if now == typed and open[buf] and not review.closed and vim.bo[buf].modified then
          review:recheck()
        end
      end, 400)
    end,
  })
  M.refresh(review)
  if cursor then
    M.go_to(cursor)
  end
  vim.api.nvim_echo({ { "The proposal is on the right, yours to change; :w decides all of it, :q leaves the rest undecided", "PillionHint" } }, false, {})
end

-- Shows the first undecided file side by side; the focus does not move.
---@param review pillion.Review
function M.beside(review)
  local here = vim.api.nvim_get_current_win()
  local file = review:first_open_file()
  if file and file.kind ~= "create" and file.kind ~= "delete" then
    M.split(review, file)
  end
  if vim.api.nvim_win_is_valid(here) then
    vim.api.nvim_set_current_win(here)
  end
end

-- Closes the panes of a review.
---@param review pillion.Review
function M.close(review)
  for _, buf in ipairs(vim.tbl_keys(open)) do
    local pane = open[buf]
    if pane and pane.review == review then
      pane.close()
    end
  end
end

-- Returns the file of a review in the current window, else its first undecided file.
---@param review pillion.Review
---@return pillion.ReviewFile?
function M.file_here(review)
  return review:file_in(vim.api.nvim_get_current_buf()) or review:first_open_file()
end

return M
