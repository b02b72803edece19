-- What the subcommands do that takes more than a line.
local approval = require("pillion.approval")
local log = require("pillion.log")
local paths = require("pillion.paths")
local process = require("pillion.process")
local sessions = require("pillion.session")

local M = {}

local function open_stored(id, cwd)
  local known = sessions.by_id[id]
  local s = sessions.stored(id, cwd, true)
  require("pillion.chat").open(false, s)
  if known and known.state == "ready" then
    return
  end
  s:open(function(err)
    if err then
      sessions.by_id[id] = nil
      s:note("error", err)
    end
  end)
end

local function list(all, callback)
  process.request("session/list", { cwd = not all and vim.fn.getcwd() or nil }, function(err, r)
    if err then
      return log.tell("error", err.message)
    end
    callback(r.sessions or {})
  end)
end

---@param all boolean
function M.sessions(all)
  list(all, function(found)
    if #found == 0 then
      return log.tell("info", "no stored sessions " .. (all and "yet" or "of this folder; :Pillion sessions all shows every folder's"))
    end
    vim.ui.select(found, {
      prompt = "Sessions",
      format_item = function(s)
        local time = (s.updatedAt or ""):gsub("T(%d%d:%d%d).*", " %1")
        return ("%s  %s%s"):format(time, s.title and s.title ~= "" and s.title or s.sessionId, all and ("  (" .. paths.short(s.cwd) .. ")") or "")
      end,
    }, function(s)
      if s then
        open_stored(s.sessionId, s.cwd)
      end
    end)
  end)
end

---@param id? string
function M.resume(id)
  list(false, function(found)
    for _, s in ipairs(found) do
      if not id or s.sessionId == id then
        return open_stored(s.sessionId, s.cwd)
      end
    end
    log.tell("info", id and ("no session " .. id .. " in this folder") or "no stored session of this folder")
  end)
end

---@param what? string
function M.review(what)
  local review = require("pillion.review").current()
  local go = require("pillion.review_go")
  local view = require("pillion.review_view")
  if not review then
    local s = sessions.current
    if s and s.id and (what == "next" or what == "prev") and require("pillion.follow").step(s, what == "next" and 1 or -1) then
      return
    end
    return log.tell("info", "nothing is proposed; :Pillion changes shows what was changed")
  end
  if what == "next" or what == "prev" then
    return go.step(review, what == "next" and 1 or -1)
  elseif what == "list" then
    return require("pillion.quickfix").hunks(review)
  elseif what == "files" then
    local files = {}
    for _, f in ipairs(review.files) do
      files[#files + 1] = { path = f.path, kind = f.kind, hunks = f.hunks, line = f.hunks[1] and math.max(f.hunks[1].old_start, 1) }
    end
    return require("pillion.quickfix").files(files)
  elseif what == "reset" then
    review:reset()
    return log.tell("info", "all hunks are open again")
  elseif what == "split" or (not what and require("pillion.config").options.review.layout == "split") then
    local edit = require("pillion.review_edit")
    local file = edit.file_here(review)
    if file then
      edit.split(review, file)
    end
    return
  elseif what == "unified" then
    require("pillion.review_edit").close(review)
    view.show(review)
  end
  local first = go.here(review)
  if not first then
    for _, h in ipairs(review.hunks) do
      if not h.decision then
        first = h
        break
      end
    end
  end
  if first then
    go.to(review, first)
  end
end

-- Whether the current buffer shows a part of the review.
local function shown_here(review)
  local buf = vim.api.nvim_get_current_buf()
  for _, f in ipairs(review.files) do
    if f.buf == buf then
      return f
    end
  end
end

---@param verdict "accept"|"reject"
---@param args string[]
function M.decide(verdict, args)
  local review = require("pillion.review").current()
  local here = review and shown_here(review)
  local what = args[1]
  if not here and review and what ~= "all" then
    local other = approval.first({ permission = true, form = true })
    if not other then
      -- The cursor is elsewhere: one hunk of many is not meant blindly.
      return log.tell("info", "go to the proposal first (:Pillion review), or decide about all of it (:Pillion " .. verdict .. " all)")
    end
    review = nil
  end
  if review then
    if what == "always" then
      return M.always(review.ask)
    end
    return M.decide_hunks(review, here, verdict, args)
  end
  local ask = approval.first({ permission = true, form = true })
  if ask then
    if what == "always" then
      return M.always(ask)
    elseif ask.kind == "form" then
      return verdict == "reject" and approval.dismiss(ask) or approval.pick(ask)
    end
    local comment = verdict == "reject" and table.concat(args, " ") or nil
    if not approval.decide(ask, verdict == "accept" and "allow_once" or "reject_once", comment) then
      approval.pick(ask)
    end
    return
  end
  local s = sessions.current
  if s and s.id and require("pillion.follow").touched[s.id] then
    return require("pillion.follow").settle(s, verdict == "accept" and "keep" or "undo", what or "hunk")
  end
  log.tell("info", "nothing waits for a decision")
end

function M.always(ask)
  local always = vim.tbl_filter(function(o)
    return o.kind == "allow_always"
  end, ask.options)
  vim.ui.select(always, {
    prompt = "Always allow",
    format_item = function(o)
      return o.name
    end,
  }, function(o)
    if o then
      approval.choose(ask, o)
    end
  end)
end

---@param review pillion.Review
---@param here? pillion.ReviewFile
---@param verdict "accept"|"reject"
---@param args string[]
function M.decide_hunks(review, here, verdict, args)
  local go = require("pillion.review_go")
  local what, hunks = args[1], {}
  local words = verdict == "reject" and what ~= "hunk" and what ~= "file" and what ~= "all" and table.concat(args, " ") or ""
  if #review.hunks == 0 then
    approval.decide(review.ask, verdict == "accept" and "allow_once" or "reject_once", words)
    return
  end
  if what == "all" or what == "file" then
    for _, h in ipairs(review.hunks) do
      if not h.decision and (what == "all" or h.file == here) then
        hunks[#hunks + 1] = h
      end
    end
  else
    hunks = { go.here(review) }
  end
  local last = hunks[#hunks]
  if not last then
    return log.tell("info", "no open hunk here; :Pillion review goes to the next")
  end
  review:decide(hunks, verdict, { comment = words ~= "" and words or nil })
  go.onward(review, last)
end

local function hunk_here()
  local review = require("pillion.review").current()
  local hunk = review and require("pillion.review_go").here(review)
  if not hunk then
    log.tell("info", "there is no proposed hunk here; :Pillion review goes to one")
    return nil
  end
  return review, hunk
end

function M.edit()
  local review, hunk = hunk_here()
  if review then
    require("pillion.review_edit").hunk(review, hunk)
  end
end

---@param words string
function M.comment(words)
  local review, hunk = hunk_here()
  if not review then
    return
  end
  local function take(text)
    if text and text ~= "" then
      hunk.comment = text
      require("pillion.review_view").refresh(review)
    end
  end
  if words ~= "" then
    return take(words)
  end
  vim.ui.input({ prompt = "About this hunk: ", default = hunk.comment }, take)
end

---@param id string
---@param lead string
---@return string[]
function M.value_list(id, lead)
  local s = sessions.current
  local o = s and s:option(id)
  local out = {}
  for _, x in ipairs(o and o.options or {}) do
    if x.value:find(lead, 1, true) then
      out[#out + 1] = x.value
    end
  end
  return out
end

---@param id string
---@param value string
---@return boolean
function M.values(id, value)
  return vim.tbl_contains(M.value_list(id, ""), value)
end

---@param id string
---@param value? string
function M.option(id, value)
  local s = sessions.get()
  s:open(function(err)
    if err then
      return log.tell("error", err)
    end
    if value then
      return s:set_option(id, value)
    end
    local o = s:option(id)
    if not o then
      return log.tell("info", id == "thought_level" and "this model has no levels of thinking" or ("there is no choice of " .. id))
    end
    vim.ui.select(o.options, {
      prompt = o.name,
      format_item = function(x)
        return (x.value == o.currentValue and "● " or "  ") .. x.name .. (x.description and x.description ~= "" and ("  " .. x.description:gsub("\n.*", "")) or "")
      end,
    }, function(x)
      if x then
        s:set_option(id, x.value)
      end
    end)
  end)
end

---@param args string[]
---@param raw table
function M.add(args, raw)
  local context = require("pillion.context")
  local s = sessions.get()
  local added = {}
  if raw.range and raw.range > 0 then
    added[#added + 1] = context.range(require("pillion.selection").lines(vim.api.nvim_get_current_buf(), raw.line1, raw.line2))
  elseif #args == 0 then
    local buf = context.front()
    if not buf then
      return log.tell("info", "there is no file in front to add")
    end
    added[#added + 1] = context.file(vim.api.nvim_buf_get_name(buf))
  end
  for _, a in ipairs(args) do
    if a:sub(1, 1) == "@" then
      local c = context.mention(a, s.cwd)
      if not c then
        log.tell("warn", a .. " stands for nothing here")
      end
      added[#added + 1] = c
    else
      for _, f in ipairs(vim.fn.glob(vim.fn.expand(a), true, true)) do
        added[#added + 1] = context.file(vim.fn.fnamemodify(f, ":p"):gsub("/$", ""))
      end
    end
  end
  local names = {}
  for _, c in ipairs(added) do
    table.insert(s.attached, c)
    names[#names + 1] = c.name
  end
  s:status()
  if #names > 0 then
    log.tell("info", "goes along with the next prompt: " .. table.concat(names, ", "))
  end
end

local function prompt_line(item)
  return (sessions.content_text(item.prompt[1] or {}):gsub("\n.*", " …"))
end

function M.queue()
  local s = sessions.get()
  s:call("_pillion/session/queue", {}, function(err, r)
    if err then
      return log.tell("error", err.message)
    end
    if #r.items == 0 then
      return log.tell("info", "no prompt waits")
    end
    vim.ui.select(r.items, { prompt = "Waiting prompts", format_item = prompt_line }, function(item)
      if not item then
        return
      end
      local verbs = { { "remove", "Remove it" }, { "steer", "Put it into the turn that runs" }, { "edit", "Change it" }, { "first", "Make it the next" } }
      vim.ui.select(verbs, {
        prompt = prompt_line(item),
        format_item = function(v)
          return v[2]
        end,
      }, function(v)
        if not v then
          return
        end
        local function change(params)
          s:call("_pillion/session/queue", params, function(e)
            if e then
              log.tell("error", e.message)
            end
          end)
        end
        if v[1] == "remove" then
          change({ remove = { item.id } })
        elseif v[1] == "steer" then
          change({ steer = item.id })
        elseif v[1] == "first" then
          change({ move = { id = item.id, before = r.items[1].id } })
        else
          vim.ui.input({ prompt = "Prompt: ", default = prompt_line(item) }, function(text)
            if text and text ~= "" then
              change({ edit = { id = item.id, prompt = { { type = "text", text = text } } } })
            end
          end)
        end
      end)
    end)
  end)
end

function M.fork()
  local s = sessions.get()
  s:call("_pillion/session/fork", {}, function(err, r)
    if err then
      return log.tell("error", err.message)
    end
    open_stored(r.sessionId, s.cwd)
  end)
end

function M.permissions()
  local s = sessions.get()
  s:call("_pillion/permission/list", {}, function(err, r)
    if err then
      return log.tell("error", err.message)
    end
    vim.ui.select(r.rules, {
      prompt = "Permission rules, the last that matches wins; choose a remembered one to forget it",
      format_item = function(x)
        return ("%-6s %s %s  (%s)"):format(x.action, x.permission, x.pattern, x.origin or "default")
      end,
    }, function(x)
      if not x then
        return
      elseif not x.id then
        return log.tell("info", "this rule comes from " .. (x.origin or "the defaults") .. " and is changed there")
      end
      s:call("_pillion/permission/revoke", { id = x.id }, function(e)
        log.tell(e and "error" or "info", e and e.message or "forgotten")
      end)
    end)
  end)
end

return M
