-- How a review looks, in the files' own windows: deleted lines coloured, added ones as virtual lines, one line above
-- the first open hunk that says what the change is. Extmarks hold the places, so hunks follow what the person types.
local compat = require("pillion.compat")
local config = require("pillion.config")
local map = require("pillion.review_keys")
local paths = require("pillion.paths")
local syntax = require("pillion.syntax")

local M = {}

M.ns = vim.api.nvim_create_namespace("pillion_review")
local hints = vim.api.nvim_create_namespace("pillion_review_hint")
local group = "pillion_review"

-- Lines of a hunk shown as virtual lines; the rest is named.
local max_virtual = 300

local function row_of(hunk)
  if hunk.mark and hunk.file.buf and compat.loaded(hunk.file.buf) then
    return vim.api.nvim_buf_get_extmark_by_id(hunk.file.buf, M.ns, hunk.mark, {})[1]
  end
end
M.row = row_of

-- Where a hunk's old lines are in the buffer now: where they were, or the nearest place that reads the same.
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

local function added(hunk, buf)
  local file = hunk.file
  if not file.spans and config.options.review.highlight and file.new_text then
    file.spans = syntax.spans(file.new_text, syntax.filetype(file.path, buf))
  end
  local first = hunk.new_start or 1
  local coloured = file.spans and file.spans(first, first + math.min(#hunk.new, max_virtual) - 1) or {}
  local tabstop, width = vim.bo[buf].tabstop, vim.o.columns
  local lines = {}
  for i, l in ipairs(hunk.new) do
    if i > max_virtual then
      lines[#lines + 1] = { { ("  … %d more lines; %s shows them"):format(#hunk.new - max_virtual, config.options.keymaps.edit or ":Pillion edit"), "PillionHint" } }
      break
    end
    local shown = vim.fn.strtrans(l:sub(1, 2000)):gsub("%^I", "\t")
    local spans = shown == l and coloured[first + i - 1] or nil
    local chunks = syntax.chunks(shown, spans, "PillionAdd", tabstop)
    local pad = width - vim.fn.strdisplaywidth(shown)
    if pad > 0 then
      chunks[#chunks + 1] = { (" "):rep(pad), "PillionAdd" }
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

local function place(hunk, buf)
  M.clear(hunk)
  local row, moved = locate(buf, hunk)
  local count = vim.api.nvim_buf_line_count(buf)
  hunk.moved = moved
  hunk.mark = vim.api.nvim_buf_set_extmark(buf, M.ns, math.min(row, count - 1), 0, { id = hunk.mark })
  local function mark(at, opts)
    hunk.marks[#hunk.marks + 1] = vim.api.nvim_buf_set_extmark(buf, M.ns, at, 0, opts)
  end
  if hunk.file.kind == "create" then
    for i = 0, count - 1 do
      mark(i, { line_hl_group = "PillionAdd", sign_text = "+", sign_hl_group = "PillionAddSign" })
    end
    return
  end
  for i = 0, #hunk.old - 1 do
    if row + i < count then
      mark(row + i, { line_hl_group = "PillionDelete", sign_text = "-", sign_hl_group = "PillionDeleteSign" })
    end
  end
  if #hunk.new > 0 then
    local anchor = row + #hunk.old - 1
    local above = anchor < 0
    anchor = math.max(0, math.min(anchor, count - 1))
    mark(anchor, { virt_lines = added(hunk, buf), virt_lines_above = above })
    if #hunk.old == 0 then
      mark(anchor, { sign_text = "+", sign_hl_group = "PillionAddSign" })
    end
  end
end

-- The buffer that a new file is shown in before it exists. What is changed in it is part of the answer, and `:w` gives it.
local function preview(file)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.b[buf].pillion_preview = file.path
  pcall(vim.api.nvim_buf_set_name, buf, "pillion://new/" .. buf .. "/" .. paths.short(file.path))
  local hunk = file.hunks[1]
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, hunk and hunk.new or {})
  vim.bo[buf].bufhidden = "hide"
  vim.bo[buf].buftype = "acwrite"
  vim.bo[buf].modified = false
  vim.api.nvim_create_autocmd("BufWriteCmd", {
    buffer = buf,
    callback = function()
      vim.bo[buf].modified = false
      vim.schedule(function() -- the answer wipes this buffer out
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

-- Shows a file's hunks in its buffer, where it has one that is loaded.
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
    if file.buf ~= buf then -- loading it may have come here already, by the autocommand
      file.buf, file.mapped = buf, nil
      for _, h in ipairs(file.hunks) do
        h.mark, h.marks = nil, {}
      end
    end
  end
  for _, h in ipairs(file.hunks) do
    if not h.decision and #h.marks == 0 and not file.side_by_side then
      place(h, file.buf)
    end
  end
  map(file, true)
  return file.buf
end

-- The line that speaks for a hunk: its first old one, or the one that it is inserted after.
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

-- The head above the first open hunk of each file, and a number at each.
---@param review pillion.Review
function M.refresh(review)
  for _, file in ipairs(review.files) do
    local buf = file.buf
    if buf and compat.loaded(buf) then
      vim.api.nvim_buf_clear_namespace(buf, hints, 0, -1)
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
      for _, h in ipairs(file.hunks) do
        local row = not h.decision and row_of(h)
        if row then
          local label = ("%d/%d"):format(h.number, #review.hunks)
          if h == nearest then
            label = label .. "  " .. keys({ "accept", "reject", "edit", "comment" })
          end
          if h.moved then
            label = "changed meanwhile  " .. label
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

-- Marks what has a buffer already, and what gets one later. Nothing is opened.
---@param review pillion.Review
function M.show(review)
  require("pillion.highlights").define()
  for _, file in ipairs(review.files) do
    M.attach(file)
  end
  M.refresh(review)
  local open = require("pillion.review").open
  vim.api.nvim_create_augroup(group, { clear = true })
  vim.api.nvim_create_autocmd({ "BufReadPost", "BufWinEnter" }, {
    group = group,
    callback = function(args)
      for _, r in ipairs(open) do
        for _, f in ipairs(r.files) do
          if f.kind ~= "create" and paths.buffer(f.path) == args.buf then
            if args.event == "BufReadPost" then -- read again: its marks are gone
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

-- Takes a file's marks for gone.
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
      map(file, false)
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

-- Shows the first open hunk in a window for files; the focus stays where it is.
---@param review pillion.Review
function M.present(review)
  require("pillion.review_go").present(review)
end

return M
