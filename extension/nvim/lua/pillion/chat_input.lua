-- The input: a small window below the conversation. `<CR>` in normal mode or `<C-s>` sends.
local compat = require("pillion.compat")
local config = require("pillion.config")

local M = {}

local ns = vim.api.nvim_create_namespace("pillion_input")

local function lines_of(buf)
  return vim.api.nvim_buf_get_lines(buf, 0, -1, false)
end

---@param v pillion.ChatBuffer
---@param words string
local function set(v, words)
  vim.api.nvim_buf_set_lines(v.input, 0, -1, false, vim.split(words, "\n", { plain = true }))
end

local function send(v, how)
  local words = vim.trim(table.concat(lines_of(v.input), "\n"))
  if words == "" then
    return
  end
  v.history = v.history or {}
  if v.history[#v.history] ~= words then
    table.insert(v.history, words)
  end
  v.browsing = nil
  set(v, "")
  require("pillion.chat").send(v.session, words, nil, how)
end

-- <Up> and <Down> show earlier prompts if there is no line above or below.
local function browse(v, step)
  local history = v.history or {}
  local at = (v.browsing or #history + 1) + step
  if at < 1 or at > #history + 1 then
    return
  end
  if not v.browsing then
    v.draft = table.concat(lines_of(v.input), "\n")
  end
  v.browsing = at <= #history and at or nil
  set(v, history[at] or v.draft or "")
  local count = vim.api.nvim_buf_line_count(v.input)
  vim.api.nvim_win_set_cursor(0, { count, #lines_of(v.input)[count] })
end

local function create(v)
  local buf = vim.api.nvim_create_buf(false, true)
  v.input = buf
  vim.b[buf].pillion_input_of = v.buf
  vim.bo[buf].buftype = "nofile"
  vim.bo[buf].bufhidden = "hide"
  vim.bo[buf].swapfile = false
  pcall(vim.api.nvim_buf_set_name, buf, "pillion://input/" .. v.buf)
  vim.bo[buf].filetype = "pillioninput"
  vim.bo[buf].completefunc = "v:lua.require'pillion.complete'.omni"
  vim.bo[buf].omnifunc = "v:lua.require'pillion.complete'.omni"
  local function map(mode, lhs, f, desc)
    vim.keymap.set(mode, lhs, f, { buffer = buf, silent = true, desc = "Pillion: " .. desc })
  end
  map("n", "<CR>", function()
    send(v)
  end, "send")
  map({ "n", "i" }, "<C-s>", function()
    send(v)
  end, "send")
  map({ "n", "i" }, "<M-CR>", function()
    send(v, "steer")
  end, "put into the turn that runs")
  map("n", "<C-c>", function()
    v.session:cancel()
  end, "stop the turn")
  map("n", "q", function()
    require("pillion.chat").close()
  end, "close the chat")
  for lhs, step in pairs({ ["<Up>"] = -1, ["<Down>"] = 1 }) do
    vim.keymap.set({ "n", "i" }, lhs, function()
      local line = vim.api.nvim_win_get_cursor(0)[1]
      local edge = step < 0 and 1 or vim.api.nvim_buf_line_count(buf)
      if vim.fn.pumvisible() == 1 or line ~= edge then
        return lhs
      end
      vim.schedule(function()
        browse(v, step)
      end)
      return ""
    end, { buffer = buf, expr = true, desc = "Pillion: earlier prompts" })
  end
  vim.api.nvim_create_autocmd("TextChangedI", {
    buffer = buf,
    callback = function()
      require("pillion.complete").auto(v.session)
    end,
  })
end

-- Returns the input window of this tab page.
---@param v pillion.ChatBuffer
---@return integer?
function M.window(v)
  for _, w in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.api.nvim_win_get_buf(w) == v.input then
      return w
    end
  end
end

---@param v pillion.ChatBuffer
---@param chat integer window of the conversation
function M.open(v, chat)
  if not (v.input and compat.loaded(v.input)) then
    create(v)
  end
  local win
  for _, w in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.b[vim.api.nvim_win_get_buf(w)].pillion_input_of then
      win = w
    end
  end
  if not win then
    local back = vim.api.nvim_get_current_win()
    vim.api.nvim_set_current_win(chat)
    local room = pcall(vim.cmd, "belowright " .. config.options.chat.input_height .. "split")
    win = vim.api.nvim_get_current_win()
    vim.api.nvim_set_current_win(back)
    if not room then
      return require("pillion.log").tell("warn", "the window is too small for the chat's input; use :Pillion {prompt}")
    end
  end
  vim.api.nvim_win_set_buf(win, v.input)
  for name, value in pairs({ number = false, relativenumber = false, signcolumn = "no", wrap = true, linebreak = true, winfixheight = true, foldcolumn = "0", foldenable = false, list = false, spell = false, winbar = "", fillchars = "eob: " }) do
    compat.win_option(win, name, value)
  end
  compat.win_option(win, "statusline", "%{%v:lua.require'pillion.status'.line(" .. v.buf .. ")%}")
  M.attached(v)
end

-- Closes an input window unless it is the last of its tab page.
---@param win integer
function M.close(win)
  if vim.api.nvim_win_is_valid(win) and #vim.api.nvim_tabpage_list_wins(0) > 1 then
    vim.api.nvim_win_close(win, true)
  end
end

-- Shows what is sent with the next prompt.
---@param v pillion.ChatBuffer
function M.attached(v)
  if not (v.input and compat.loaded(v.input)) then
    return
  end
  vim.api.nvim_buf_clear_namespace(v.input, ns, 0, -1)
  local names = {}
  for _, c in ipairs(v.session.attached) do
    names[#names + 1] = c.name
  end
  if #names > 0 then
    local last = vim.api.nvim_buf_line_count(v.input) - 1
    vim.api.nvim_buf_set_extmark(v.input, ns, last, 0, { virt_lines = { { { "+ " .. table.concat(names, ", "), "PillionAttached" } } } })
  elseif table.concat(lines_of(v.input)) == "" then
    vim.api.nvim_buf_set_extmark(v.input, ns, 0, 0, { virt_text = { { "Ask; @ adds files, / commands; <C-s> sends", "PillionHint" } }, virt_text_pos = "overlay" })
  end
end

M.set = set

return M
