-- Draws a review in the files' own windows: deleted lines are coloured, added ones are virtual lines, and a header is
-- above the first open hunk. A decided hunk stays visible: an accepted one with its new text, a rejected one dimmed.
-- Extmarks hold the places, so hunks move with the text that the person types.
local compat = require("pillion.compat")
local config = require("pillion.config")
local map = require("pillion.review_keys")
local paths = require("pillion.paths")
local syntax = require("pillion.syntax")

local M = {}

M.ns = vim.api.nvim_create_namespace("pillion_review")
local hints = vim.api.nvim_create_namespace("pillion_review_hint")
local group = "pillion_review"

-- Lines of a hunk shown as virtual lines; the number of the others is shown.
local max_virtual = 300

local function row_of(hunk)
  if hunk.mark and hunk.file.buf and compat.loaded(hunk.file.buf) then
    return vim.api.nvim_buf_get_extmark_by_id(hunk.file.buf, M.ns, hunk.mark, {})[1]
  end
end
M.row = row_of

-- Returns where a hunk's old lines are in the buffer: at their place, or at the nearest place with the same text.
local function locate(buf, hunk)
  local count = vim.api.nvim_buf_line_count(buf)
  local want = #hunk.old > 0 and hunk.old_start - 1 or hunk.old_start
  if #hunk.old == 0 then
    return math.min(want, count)
  end
  local function same(row)
    if row < 0 or row + #hunk.old > count then
      return false
    end
    local have = vim.api.nvim_buf_get_lines(buf, row, row + #hunk.old, false)
    for i, l in ipairs(hunk.old) do
      if have[i] ~= l and have[i] ~= l .. "\r" then
        return false
      end
    end
    return true
  end
  for d = 0, 300 do
    if same(want - d) then
      return want - d
    elseif same(want + d) then
      return want + d
    end
  end
  return math.max(0, math.min(want, count - 1)), true
end

-- Returns the width of the columns left of the text in the window of a buffer: signs, numbers, folds.
local function gutter(buf)
  local win = vim.fn.win_findbuf(buf)[1]
  local info = win and vim.fn.getwininfo(win)[1]
  return info and info.textoff or 0
end

-- Returns a hunk's new lines as virtual lines. They start at the window's left edge, so that the sign of an added
-- line is beside that line and not beside the line above it.
---@param look {sign: string, sign_group: string, group: string}
local function added(hunk, buf, look)
  local file = hunk.file
  local text = hunk.decision == "edit" and hunk.new_lines or hunk.new
  local as_proposed = text == hunk.new
  if not file.spans and config.options.review.highlight and file.new_text then
    file.spans = syntax.spans(file.new_text, syntax.filetype(file.path, buf))
  end
  local first = hunk.new_start or 1
  local coloured = as_proposed and file.spans and file.spans(first, first + math.min(#text, max_virtual) - 1) or {}
  local tabstop, width, left = vim.bo[buf].tabstop, vim.o.columns, gutter(buf)
  local margin = left == 0 and "" or look.sign .. (" "):rep(left - 1)
  local lines = {}
  for i, l in ipairs(text) do
    if i > max_virtual then
      lines[#lines + 1] = { { (" "):rep(left) .. ("  … %d more lines; %s shows them"):format(#text - max_virtual, config.options.keymaps.edit or ":Pillion edit"), "PillionHint" } }
      break
    end
    local shown = vim.fn.strtrans(l:sub(1, 2000)):gsub("%^I", "\t")
    local spans = shown == l and coloured[first + i - 1] or nil
    local chunks = syntax.chunks(shown, spans, look.group, tabstop)
    if left > 0 then
      table.insert(chunks, 1, { margin, look.sign_group })
    end
    local pad = width - left - vim.fn.strdisplaywidth(shown)
    if pad > 0 then
      chunks[#chunks + 1] = { (" "):rep(pad), look.group }
    end
    lines[#lines + 1] = chunks
  end
  return lines
end

---@param hunk pillion.ReviewHunk
function M.clear(hunk)
  local buf = hunk.file.buf
  if buf and vim.api.nvim_buf_is_valid(buf) then
    for _, id in ipairs(hunk.marks) do
      vim.api.nvim_buf_del_extmark(buf, M.ns, id)
    end
  end
  hunk.marks = {}
end

-- The look of a hunk's lines for each decision.
local looks = {
  open = { old = "PillionDelete", old_sign = "-", old_sign_group = "PillionDeleteSign", group = "PillionAdd", sign = "+", sign_group = "PillionAddSign" },
  accept = { old = "PillionGone", old_sign = "✓", old_sign_group = "PillionAccepted", group = "PillionTaken", sign = "✓", sign_group = "PillionAccepted" },
  reject = { old_sign = "✗", old_sign_group = "PillionRejected", group = "PillionDropped", sign = "✗", sign_group = "PillionRejected" },
}
looks.edit = looks.accept

-- Returns the decision on a hunk as a word, and its highlight group.
---@param hunk pillion.ReviewHunk
---@return string words
---@return string group
function M.decision(hunk)
  local words = { accept = "accepted", edit = "accepted as edited", reject = "rejected" }
  return words[hunk.decision] or "undecided", looks[hunk.decision or "open"].sign_group
end

local function place(hunk, buf)
  M.clear(hunk)
  local row, moved
  if hunk.decision then
    row = row_of(hunk)
  end
  if not row then
    row, moved = locate(buf, hunk)
  end
  local look = looks[hunk.decision or "open"]
  local count = vim.api.nvim_buf_line_count(buf)
  hunk.moved = moved
  hunk.mark = vim.api.nvim_buf_set_extmark(buf, M.ns, math.min(row, count - 1), 0, { id = hunk.mark })
  local function mark(at, opts)
    hunk.marks[#hunk.marks + 1] = vim.api.nvim_buf_set_extmark(buf, M.ns, at, 0, opts)
  end
  if hunk.file.kind == "create" then
    for i = 0, count - 1 do
      mark(i, { line_hl_group = look.group, sign_text = look.sign, sign_hl_group = look.sign_group })
    end
    return
  end
  for i = 0, #hunk.old - 1 do
    if row + i < count then
      mark(row + i, { line_hl_group = look.old, sign_text = look.old_sign, sign_hl_group = look.old_sign_group })
    end
  end
  local text = hunk.decision == "edit" and hunk.new_lines or hunk.new
  if #text > 0 then
    local anchor = row + #hunk.old - 1
    local above = anchor < 0
    anchor = math.max(0, math.min(anchor, count - 1))
    mark(anchor, { virt_lines = added(hunk, buf, look), virt_lines_above = above, virt_lines_leftcol = true })
  end
end

-- Creates the buffer in which a new file is shown before it exists. Its text is part of the answer; `:w` sends the
-- answer.
local function preview(file)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.b[buf].pillion_preview = file.path
  pcall(vim.api.nvim_buf_set_name, buf, "pillion://new/" .. buf .. "/" .. paths.short(file.path))
  local hunk = file.hunks[1]
  require("pillion.review_edit").fill(buf, hunk and hunk.new or {})
  vim.bo[buf].bufhidden = "hide"
  vim.bo[buf].buftype = "acwrite"
  vim.api.nvim_create_autocmd("BufWriteCmd", {
    buffer = buf,
    callback = function()
      vim.bo[buf].modified = false
      vim.schedule(function() -- the answer deletes this buffer, which is not allowed in this autocommand
        for _, r in ipairs({ unpack(require("pillion.review").open) }) do
          if vim.tbl_contains(r.files, file) then
            r:decide(file.hunks, "accept")
          end
        end
      end)
    end,
  })
  local ft = syntax.filetype(file.path)
  if ft ~= "" then
    vim.bo[buf].filetype = ft
  end
  return buf
end

local function review_of(file)
  for _, r in ipairs(require("pillion.review").open) do
    if vim.tbl_contains(r.files, file) then
      return r
    end
  end
end

-- Shows a file's hunks in its buffer, if that is loaded.
---@param file pillion.ReviewFile
---@param load? boolean make and load the buffer
---@return integer? buf
function M.attach(file, load)
  if not (file.buf and compat.loaded(file.buf)) then
    local buf
    if file.kind == "create" then
      buf = load and preview(file) or nil
    else
      buf = load and paths.load(file.path) or paths.buffer(file.path)
    end
    if not buf or not compat.loaded(buf) then
      return nil
    end
    if file.buf ~= buf then -- the autocommand of loading it may have called this function already
      file.buf, file.mapped = buf, nil
      for _, h in ipairs(file.hunks) do
        h.mark, h.marks = nil, {}
      end
    end
  end
  local width, placed = gutter(file.buf), false
  for _, h in ipairs(file.hunks) do
    if (#h.marks == 0 or file.gutter ~= width) and not file.side_by_side then
      place(h, file.buf)
      placed = true
    end
  end
  file.gutter = width
  if placed then
    vim.schedule(function() -- 'signcolumn' is "auto" by default: the first sign moves the text, and the new width is known after a redraw
      vim.cmd("redraw")
      local review = file.buf and compat.loaded(file.buf) and gutter(file.buf) ~= file.gutter and review_of(file)
      if review then
        M.refresh(review)
      end
    end)
  end
  file.mapped = file.mapped or map.add(file.buf, review_of(file))
  return file.buf
end

-- Returns the line where a hunk's label is: its first old line, or the line after which it is inserted.
local function beside(hunk, row)
  return #hunk.old == 0 and math.max(row - 1, 0) or row
end

local function keys(names)
  local out = {}
  for _, n in ipairs(names) do
    local lhs = config.options.keymaps[n]
    if lhs then
      out[#out + 1] = lhs .. " " .. n:gsub("_", " ")
    end
  end
  return table.concat(out, "  ")
end

-- Shows the header above the first open hunk of each file (or above its first hunk, if only other files are
-- undecided), and a label at each hunk.
---@param review pillion.Review
function M.refresh(review)
  require("pillion.review_edit").refresh(review)
  for _, file in ipairs(review.files) do
    local buf = file.buf
    if buf and compat.loaded(buf) then
      vim.api.nvim_buf_clear_namespace(buf, hints, 0, -1)
      M.attach(file)
    end
    if buf and compat.loaded(buf) and not file.side_by_side then
      local cursor
      local win = vim.api.nvim_get_current_win()
      if vim.api.nvim_win_get_buf(win) == buf then
        cursor = vim.api.nvim_win_get_cursor(win)[1] - 1
      end
      local nearest, distance, first
      for _, h in ipairs(file.hunks) do
        local row = not h.decision and row_of(h)
        if row then
          first = first or h
          local d = cursor and (cursor >= row and math.max(0, cursor - row - math.max(#h.old - 1, 0)) or row - cursor) or math.huge
          if cursor and (not distance or d < distance) then
            nearest, distance = h, d
          end
        end
      end
      first = first or file.hunks[1] and row_of(file.hunks[1]) and file.hunks[1]
      for _, h in ipairs(file.hunks) do
        local row = row_of(h)
        if row and h.decision then
          local words, colour = M.decision(h)
          vim.api.nvim_buf_set_extmark(buf, hints, beside(h, row), 0, { virt_text = { { ("  %d/%d "):format(h.number, #review.hunks), "PillionHint" }, { words, colour } }, virt_text_pos = "eol" })
        elseif row then
          local label = ("%d/%d"):format(h.number, #review.hunks)
          local effect = review:effect(h)
          if effect ~= "" then
            label = label .. "  " .. effect
          end
          if h == nearest then
            label = label .. "  " .. keys({ "accept", "reject", "edit", "comment" })
          end
          if h.moved then
            label = "these lines have changed since  " .. label
          end
          if h.comment then
            label = "“" .. h.comment .. "”  " .. label
          end
          vim.api.nvim_buf_set_extmark(buf, hints, beside(h, row), 0, { virt_text = { { "  " .. label, "PillionHint" } }, virt_text_pos = "eol" })
        end
      end
      if first then
        local head = { { " " .. review:headline() .. " ", "PillionHead" } }
        if file.kind == "rename" then
          head[#head + 1] = { "· renamed to " .. paths.short(file.new_path or "") .. " ", "PillionHint" }
        elseif file.kind ~= "edit" then
          head[#head + 1] = { "· " .. (file.kind == "create" and "a new file" or "the file is deleted") .. " ", "PillionHint" }
        end
        local all = keys({ "accept_all", "reject_all" })
        if all ~= "" then
          head[#head + 1] = { "· " .. all, "PillionHint" }
        end
        vim.api.nvim_buf_set_extmark(buf, hints, beside(first, row_of(first)), 0, { virt_lines = { head }, virt_lines_above = true })
      end
    end
  end
end

-- Draws the hunks in buffers that exist, and in others when they are loaded. It opens none.
---@param review pillion.Review
function M.show(review)
  require("pillion.highlights").define()
  for _, file in ipairs(review.files) do
    M.attach(file)
  end
  M.refresh(review)
  local open = require("pillion.review").open
  vim.api.nvim_create_augroup(group, { clear = true })
  vim.api.nvim_create_autocmd("OptionSet", { -- the added lines are drawn over the gutter, so they depend on its width
    group = group,
    pattern = { "number", "relativenumber", "signcolumn", "foldcolumn", "numberwidth" },
    callback = function()
      vim.schedule(function()
        for _, r in ipairs(open) do
          M.refresh(r)
        end
      end)
    end,
  })
  vim.api.nvim_create_autocmd({ "BufReadPost", "BufWinEnter" }, {
    group = group,
    callback = function(args)
      for _, r in ipairs(open) do
        for _, f in ipairs(r.files) do
          if f.kind ~= "create" and paths.buffer(f.path) == args.buf then
            if args.event == "BufReadPost" then -- the buffer was read again, so its marks are gone
              M.forget(f)
            end
            M.attach(f)
            M.refresh(r)
          end
        end
      end
    end,
  })
  vim.api.nvim_create_autocmd("CursorMoved", {
    group = group,
    callback = function(args)
      for _, r in ipairs(open) do
        for _, f in ipairs(r.files) do
          if f.buf == args.buf then
            return M.refresh(r)
          end
        end
      end
    end,
  })
end

-- Forgets a file's marks, because the buffer was loaded again or no longer shows the file.
---@param file pillion.ReviewFile
function M.forget(file)
  if file.buf and vim.api.nvim_buf_is_valid(file.buf) then
    vim.api.nvim_buf_clear_namespace(file.buf, M.ns, 0, -1)
  end
  for _, h in ipairs(file.hunks) do
    h.mark, h.marks = nil, {}
  end
end

---@param review pillion.Review
function M.hide(review)
  for _, file in ipairs(review.files) do
    if file.buf and vim.api.nvim_buf_is_valid(file.buf) then
      vim.api.nvim_buf_clear_namespace(file.buf, hints, 0, -1)
      M.forget(file)
      if file.mapped then
        map.remove(file.buf, file.mapped)
        file.mapped = nil
      end
      if file.kind == "create" then
        require("pillion.review_go").drop_preview(file)
      end
    end
  end
  require("pillion.review_edit").close(review)
  if #require("pillion.review").open == 0 then
    pcall(vim.api.nvim_del_augroup_by_name, group)
  end
end

-- Shows the first open hunk in a window for files; the focus does not move.
---@param review pillion.Review
function M.present(review)
  require("pillion.review_go").present(review)
end

return M
